// directory.hpp -- directories by file descriptor, where other users may plant links.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/file.hpp"

namespace capstan::io {

/// Opens `path` without following a link in its last component. Throws Error: not_found, invalid_argument
/// (not a directory), permission_denied (a link, or no access).
FileDescriptor open_directory(const std::filesystem::path& path);
/// The same for the entry `name` of `directory`; `path` is its path in errors.
FileDescriptor open_directory(const FileDescriptor& directory, const std::string& name,
                              const std::filesystem::path& path);

/// Whose writes a directory may have seen.
enum class Writers {
  this_user,   // it belongs to this user, and neither its group nor others may write
  sticky_too,  // it may belong to root as well, and others may add entries but not rename or remove ours
};

/// Checks that no other user can replace an entry of this process in `directory`. Throws
/// Error(permission_denied) that says what is wrong.
void check_writers(const FileDescriptor& directory, const std::filesystem::path& path, Writers writers);

/// Names of all entries but "." and "..".
std::vector<std::string> names_in(const FileDescriptor& directory, const std::filesystem::path& path);

/// Removes the entry `name` of `directory` and everything below it, including entries that other processes
/// add meanwhile. Never follows a link: a link itself is removed. Does nothing when there is no such entry.
/// `path` is its path in errors.
void remove_at(const FileDescriptor& directory, const std::string& name, const std::filesystem::path& path);

}  // namespace capstan::io

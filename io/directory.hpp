// directory.hpp -- access to directories by file descriptor, safe from links that other users plant.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/file.hpp"

namespace capstan::io {

/// Opens `path` (O_PATH) without following a link in its last component. Throws Error: not_found,
/// invalid_argument (not a directory), permission_denied (a link, or no access).
FileDescriptor open_directory(const std::filesystem::path& path);
/// Opens the entry `name` of `directory` in the same way; errors name `path`.
FileDescriptor open_directory(const FileDescriptor& directory, const std::string& name,
                              const std::filesystem::path& path);

/// The users that may have write access to a directory.
enum class Writers {
  this_user,   // owned by this user, not writable by group or others
  sticky_too,  // may be owned by root or be sticky: others cannot rename or remove this user's entries
};

/// Throws Error(permission_denied) if another user could replace an entry of this process in `directory`.
void check_writers(const FileDescriptor& directory, const std::filesystem::path& path, Writers writers);

/// Returns the names of all entries except "." and "..".
std::vector<std::string> names_in(const FileDescriptor& directory, const std::filesystem::path& path);

/// Removes the entry `name` of `directory` and everything below it, including entries that other processes
/// add meanwhile. Does not follow links: removes the link itself. Does nothing if there is no such entry.
/// Errors name `path`.
void remove_at(const FileDescriptor& directory, const std::string& name, const std::filesystem::path& path);

}  // namespace capstan::io

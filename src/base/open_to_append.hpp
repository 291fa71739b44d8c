// open_to_append.hpp -- opens log files in directories where other users may plant links.
#pragma once

#include <filesystem>

namespace capstan {

/// Opens `path` for appending. Creates the file with mode 0600 and its directory with mode 0700 if they are
/// missing. Returns a descriptor with O_CLOEXEC, or -1 with errno set. Any thread.
///
/// Another user with write access to the directory cannot redirect the output: the file must not be a
/// symbolic link (ELOOP), the directory must not be another user's link (ELOOP), and an existing file must
/// belong to this user or root and have no second hard link (EPERM). Directories above that one are trusted.
int open_to_append(const std::filesystem::path& path) noexcept;

}  // namespace capstan

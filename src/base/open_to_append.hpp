// open_to_append.hpp -- opens logs and records in directories where other users may plant links.
#pragma once

#include <filesystem>

namespace capstan {

/// Opens `path` to append to it. Creates the file with mode 0600, and the directory that it is in with mode
/// 0700, where they are missing. Returns a descriptor that exec closes, or -1 with errno set. Any thread.
///
/// Another user who may write to the directory cannot redirect what is written: the file must not be a link
/// (ELOOP), the directory must not be another user's link (ELOOP), and a file that is there already must
/// belong to this user or root and have no second name (EPERM). Components above the directory are trusted.
int open_to_append(const std::filesystem::path& path) noexcept;

}  // namespace capstan

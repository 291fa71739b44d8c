// find.hpp -- resolves a path of the command line to a checkpoint.
#pragma once

#include <filesystem>
#include <string>

namespace capstan::launch::checkpoint {

/// Returns true if `path` has the name or the manifest of a checkpoint; it may still be damaged.
bool is_checkpoint(const std::filesystem::path& path);

/// Resolves a directory of checkpoints to its newest one, damaged or not; returns any other path without its
/// trailing slash. Throws Error(not_found) if the directory has no checkpoint.
std::filesystem::path find_checkpoint(const std::string& path);

/// "checkpoints/" becomes "checkpoints".
std::filesystem::path without_trailing_slash(const std::string& path);

}  // namespace capstan::launch::checkpoint

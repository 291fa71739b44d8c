// find.hpp -- which checkpoint a path means.
#pragma once

#include <filesystem>
#include <string>

namespace capstan::launch::checkpoint {

/// True when `path` is one checkpoint rather than the folder of several, as far as names tell.
bool is_one_checkpoint(const std::filesystem::path& path);

/// `path` without a slash at its end; of a folder of checkpoints its newest, whole or not. Throws
/// Error(not_found).
std::filesystem::path find_checkpoint(const std::string& path);

/// "checkpoints/" is "checkpoints".
std::filesystem::path without_slash(const std::string& path);

}  // namespace capstan::launch::checkpoint

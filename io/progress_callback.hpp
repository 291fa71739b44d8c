// progress_callback.hpp -- progress callback of long file operations.
#pragma once

#include <cstdint>
#include <functional>

namespace capstan::io {

/// Called for each chunk with its number of bytes (not the total so far). May be empty.
using ProgressCallback = std::function<void(std::uint64_t bytes)>;

}  // namespace capstan::io

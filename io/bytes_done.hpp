// bytes_done.hpp -- progress callback of long file operations.
#pragma once

#include <cstdint>
#include <functional>

namespace capstan::io {

/// Called after each chunk with its number of bytes (not the total so far). May be empty.
using BytesDone = std::function<void(std::uint64_t bytes)>;

}  // namespace capstan::io

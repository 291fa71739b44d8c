// bytes_done.hpp -- how long work on files says how far it is.
#pragma once

#include <cstdint>
#include <functional>

namespace capstan::io {

/// Told, piece by piece, how many more bytes are done. May be empty.
using BytesDone = std::function<void(std::uint64_t bytes)>;

}  // namespace capstan::io

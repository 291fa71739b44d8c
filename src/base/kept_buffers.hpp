// kept_buffers.hpp -- the memory of destroyed Buffers (capstan/buffer.hpp) that the process keeps.
// Tests: tests/base/buffer_test.cpp
#pragma once

#include <cstddef>

namespace capstan {

/// Maximum, in all.
inline constexpr std::size_t kMostKeptBytes = std::size_t{256} << 20;

/// Thread-safe.
std::size_t kept_buffer_bytes();

}  // namespace capstan

// assert.hpp -- a broken promise stops the rank, in every build.
#pragma once

namespace capstan {

/// Prints "capstan: broken promise: rows > 0 (heap.cpp:41)" and aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace capstan

/// Not for bad input, which gets an Error, and not inside loops over elements.
#define CAPSTAN_ASSERT(expression) \
  (static_cast<bool>(expression) ? void() : ::capstan::assertion_failed(#expression, __FILE__, __LINE__))

// assert.hpp -- an assertion that is active in every build; its failure aborts the process.
#pragma once

namespace capstan {

/// Prints "capstan: assertion failed: rows > 0 (heap.cpp:41)" and aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace capstan

/// Checks an invariant or a REQUIRES clause. Invalid input throws an Error instead. Do not use inside loops
/// over elements.
#define CAPSTAN_ASSERT(expression) \
  (static_cast<bool>(expression) ? void() : ::capstan::assertion_failed(#expression, __FILE__, __LINE__))

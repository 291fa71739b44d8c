// assert.cpp -- reports a failed assertion and aborts.
#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace capstan {

void assertion_failed(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "capstan: assertion failed: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace capstan

// assert.cpp -- the end of a rank that broke a promise.
#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace capstan {

void assertion_failed(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "capstan: broken promise: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace capstan

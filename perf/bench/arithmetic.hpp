// arithmetic.hpp -- arithmetic of a given duration, in place of a program's computation.
#pragma once

#include <algorithm>
#include <cstdint>

#include "perf/bench/timing.hpp"

namespace capstan::perf {

/// A chain of dependent multiplications and additions, which the compiler cannot remove.
class Arithmetic {
 public:
  /// Measures the operations that take `seconds` on a core that does nothing else.
  explicit Arithmetic(double seconds) {
    constexpr std::uint64_t kTried = 100'000;
    operations_ = kTried;
    double least = seconds_of([this] { run(); });
    for (int i = 0; i < 10; ++i) least = std::min(least, seconds_of([this] { run(); }));
    operations_ = static_cast<std::uint64_t>(seconds / least * kTried);
  }
  void run() {
    double value = value_;
    for (std::uint64_t i = 0; i < operations_; ++i) value = value * 0.999 + 0.001;
    value_ = value;
  }

 private:
  volatile double value_ = 2;
  std::uint64_t operations_ = 0;
};

}  // namespace capstan::perf

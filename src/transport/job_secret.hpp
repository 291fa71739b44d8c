// job_secret.hpp -- a secret that only the processes of one job know.
#pragma once

#include <cstdint>

namespace capstan::transport {

/// 128 random bits in the header of every active message. Never printed.
struct JobSecret {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  /// Returns random bits from the kernel (getrandom). Throws Error.
  static JobSecret random();

  /// Takes constant time, whichever bits differ.
  friend constexpr bool operator==(const JobSecret& a, const JobSecret& b) noexcept {
    return ((a.high ^ b.high) | (a.low ^ b.low)) == 0;
  }
};

}  // namespace capstan::transport

// job_secret.hpp -- what the processes of one job have and others do not.
#pragma once

#include <cstdint>

namespace capstan::transport {

/// 128 random bits, in the header of each active message. Never printed.
struct JobSecret {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  /// From the kernel (getrandom). Throws Error.
  static JobSecret random();

  /// Takes the same time wherever they differ.
  friend constexpr bool operator==(const JobSecret& a, const JobSecret& b) noexcept {
    return ((a.high ^ b.high) | (a.low ^ b.low)) == 0;
  }
};

}  // namespace capstan::transport

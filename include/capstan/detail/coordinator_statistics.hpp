// coordinator_statistics.hpp -- what a coordinator has done so far, and how long it took.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace capstan {

/// Times, by powers of two: bucket i holds those below bound(i) and not below the bound before.
struct Histogram {
  static constexpr std::size_t kBuckets = 32;
  /// In seconds: 1.024 us, twice that, ... The last bucket has no upper bound.
  static constexpr double bound(std::size_t bucket) {
    return static_cast<double>(std::uint64_t{1024} << bucket) * 1e-9;
  }
  static constexpr std::size_t bucket_of(std::uint64_t nanoseconds) {
    const auto bucket = static_cast<std::size_t>(std::bit_width(nanoseconds >> 10));
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }

  std::uint64_t count = 0;
  double seconds = 0;  ///< all together
  std::array<std::uint64_t, kBuckets> buckets{};

  void add(std::uint64_t nanoseconds) {
    ++count;
    seconds += static_cast<double>(nanoseconds) * 1e-9;
    ++buckets[bucket_of(nanoseconds)];
  }
  /// The bound of the bucket below which this part of the times lies, in seconds; 0 when there are none.
  double quantile(double part) const {
    const double wanted = part * static_cast<double>(count);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      below += buckets[i];
      if (below > 0 && static_cast<double>(below) >= wanted) return bound(i);
    }
    return 0;
  }
};

struct CoordinatorStatistics {
  std::uint64_t scheduled =
      0;  ///< since the coordinator's start, of any worker and of one, as all counts here
  std::uint64_t finished = 0;            ///< well
  std::uint64_t failed = 0;              ///< by themselves, by an argument, or by their deadline
  std::uint64_t cancelled = 0;           ///< by an earlier error
  std::uint64_t deadlines_exceeded = 0;  ///< of `failed`
  std::uint64_t moved = 0;               ///< taken from a worker that was busy, or died, and queued again
  std::uint64_t queued = 0;              ///< now
  std::uint64_t waiting = 0;             ///< now, for arguments
  std::uint64_t running = 0;             ///< now handed to a worker

  Histogram execution;  ///< of each closure that ended on a worker, measured there
  /// From schedule to a worker, of one closure in 32 and of those that found nothing queued before them. The
  /// clock is not asked for each: it takes as long as all the rest.
  Histogram queueing;
  Histogram fetch;  ///< how long each fetch waited
};

}  // namespace capstan

// coordinator_statistics.hpp -- counts and latency histograms of a coordinator.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace capstan {

/// Durations in power-of-two buckets: bucket i counts those in [bound(i - 1), bound(i)).
struct Histogram {
  static constexpr std::size_t kBuckets = 32;
  /// Upper bound of a bucket in seconds: 1.024 us, 2.048 us, ... The last bucket is unbounded.
  static constexpr double bound(std::size_t bucket) {
    return static_cast<double>(std::uint64_t{1024} << bucket) * 1e-9;
  }
  static constexpr std::size_t bucket_of(std::uint64_t nanoseconds) {
    const auto bucket = static_cast<std::size_t>(std::bit_width(nanoseconds >> 10));
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }

  std::uint64_t count = 0;
  double seconds = 0;  ///< sum of all durations
  std::array<std::uint64_t, kBuckets> buckets{};

  void add(std::uint64_t nanoseconds) {
    ++count;
    seconds += static_cast<double>(nanoseconds) * 1e-9;
    ++buckets[bucket_of(nanoseconds)];
  }
  /// Returns the upper bound, in seconds, of the bucket that contains quantile `part` (0 to 1); 0 if the
  /// histogram is empty.
  double quantile(double part) const {
    const double rank = part * static_cast<double>(count);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      below += buckets[i];
      if (below > 0 && static_cast<double>(below) >= rank) return bound(i);
    }
    return 0;
  }
};

/// Counts of closures and times since the coordinator's start: closures for any worker (schedule) and
/// closures for one worker (schedule_on).
struct CoordinatorStatistics {
  std::uint64_t scheduled = 0;
  std::uint64_t finished = 0;            ///< ended without an error
  std::uint64_t failed = 0;              ///< by their own error, an argument's error, or their deadline
  std::uint64_t cancelled = 0;           ///< by an earlier error
  std::uint64_t deadlines_exceeded = 0;  ///< included in `failed`
  std::uint64_t moved = 0;               ///< taken back from a busy or dead worker and queued again
  std::uint64_t queued = 0;              ///< current number
  std::uint64_t waiting = 0;             ///< current number that wait for arguments
  std::uint64_t running = 0;             ///< current number handed to workers

  Histogram execution;  ///< run time of each closure that ended on a worker, measured there
  /// Time from schedule to dispatch, sampled: one closure in 32, and each one scheduled to an empty queue.
  /// Reading the clock for every closure would double the cost of scheduling.
  Histogram queueing;
  Histogram fetch;  ///< time that each fetch blocked
};

}  // namespace capstan

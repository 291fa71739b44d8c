// save_rate_limiter.hpp -- limits the rate at which a checkpoint is written, so that training barely slows.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>

#include "base/idle_cores.hpp"
#include "ps/shard/store.hpp"

namespace capstan::ps {

/// Pauses the writing thread between pieces of work, to stay below a number of bytes per second. If a store
/// is given, also limits the CPU share while pushes are applied to the store and no core is idle. A low
/// scheduling priority would not do: a thread that holds the store's mutex must not be preempted for long.
/// Used by the writing thread only.
class SaveRateLimiter {
 public:
  /// `bytes_per_second`: 0: no limit. `store`: store to which training pushes; null: no CPU limit.
  explicit SaveRateLimiter(std::uint64_t bytes_per_second, Store* store = nullptr);

  /// Blocks until `bytes` more may be written. Throws Error(cancelled) if `stop` is requested before or
  /// during the pause.
  void throttle(std::uint64_t bytes, const std::stop_token& stop);

 private:
  using Clock = std::chrono::steady_clock;

  void throttle_cpu(const std::stop_token& stop);

  Store* store_;
  IdleCores idle_;
  std::uint64_t pushes_ = 0;
  std::chrono::nanoseconds cpu_time_;  // CPU time of this thread at the end of the last pause
  double bytes_per_second_;
  Clock::time_point next_write_;  // earliest time of the next write
};

}  // namespace capstan::ps

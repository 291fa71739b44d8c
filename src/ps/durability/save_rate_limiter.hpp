// save_rate_limiter.hpp -- how fast a checkpoint is written, so that who trains hardly notices.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>

#include "base/idle_cores.hpp"
#include "ps/shard/store.hpp"

namespace capstan::ps {

/// Rests between two pieces of work when more than so many bytes a second have been written; and, where a
/// store is given, as long as pushes are applied to it and no core is idle. To be nice would not do: who has
/// the store's mutex must not wait for others. Used by the thread that writes.
class SaveRateLimiter {
 public:
  /// `bytes_a_second`: 0 = no limit.
  explicit SaveRateLimiter(std::uint64_t bytes_a_second, Store* trained = nullptr);

  /// Before so many bytes more are written. Throws Error(cancelled) when it is asked to stop, also meanwhile.
  void rest(std::uint64_t bytes, const std::stop_token& stop);

 private:
  using Clock = std::chrono::steady_clock;

  void rest_from_work(const std::stop_token& stop);

  Store* trained_;
  IdleCores idle_;
  std::uint64_t pushes_ = 0;
  std::chrono::nanoseconds worked_;  // by this thread, when it went on after the last rest
  double bytes_a_second_;
  Clock::time_point full_at_;  // when all that was announced may have been written
};

}  // namespace capstan::ps

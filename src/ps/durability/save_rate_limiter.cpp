// save_rate_limiter.cpp -- limits the CPU share and the write bandwidth of a save.
#include "ps/durability/save_rate_limiter.hpp"

#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "capstan/error.hpp"

namespace capstan::ps {
namespace {

/// Share of a core that a save uses while pushes are applied and no core is idle.
constexpr double kCpuShare = 0.04;
constexpr std::chrono::milliseconds kLongestPause{100};

std::chrono::nanoseconds thread_cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

void sleep_until(std::chrono::steady_clock::time_point time, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait_until(lock, stop, time, [] { return false; });
}

}  // namespace

SaveRateLimiter::SaveRateLimiter(std::uint64_t bytes_per_second, Store* store)
    : store_(store),
      cpu_time_(thread_cpu_time()),
      bytes_per_second_(static_cast<double>(bytes_per_second)),
      next_write_(Clock::now()) {}

void SaveRateLimiter::throttle(std::uint64_t bytes, const std::stop_token& stop) {
  if (store_ != nullptr) throttle_cpu(stop);
  if (bytes_per_second_ > 0) {
    sleep_until(next_write_, stop);
    const std::chrono::duration<double> write_time(static_cast<double>(bytes) / bytes_per_second_);
    next_write_ =
        std::max(next_write_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(write_time);
  }
  if (stop.stop_requested()) throw Error(Code::cancelled, "the save was cancelled");
}

void SaveRateLimiter::throttle_cpu(const std::stop_token& stop) {
  const std::uint64_t pushes = store_->statistics().pushes;
  if (std::exchange(pushes_, pushes) != pushes && idle_.count() < 1) {
    const auto work = std::chrono::duration<double>(thread_cpu_time() - cpu_time_);
    const auto rest = std::min<std::chrono::duration<double>>(work * (1 / kCpuShare - 1), kLongestPause);
    sleep_until(Clock::now() + std::chrono::duration_cast<Clock::duration>(rest), stop);
  }
  cpu_time_ = thread_cpu_time();
}

}  // namespace capstan::ps

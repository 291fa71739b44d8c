// save_rate_limiter.cpp -- a share of a core, and of a disk.
#include "ps/durability/save_rate_limiter.hpp"

#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "capstan/error.hpp"

namespace capstan::ps {
namespace {

/// What this takes of a core while pushes are applied and no core is idle.
constexpr double kShare = 0.04;
constexpr std::chrono::milliseconds kLongestRest{100};

std::chrono::nanoseconds time_of_this_thread() {
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

SaveRateLimiter::SaveRateLimiter(std::uint64_t bytes_a_second, Store* trained)
    : trained_(trained),
      worked_(time_of_this_thread()),
      bytes_a_second_(static_cast<double>(bytes_a_second)),
      full_at_(Clock::now()) {}

void SaveRateLimiter::rest(std::uint64_t bytes, const std::stop_token& stop) {
  if (trained_ != nullptr) rest_from_work(stop);
  if (bytes_a_second_ > 0) {
    sleep_until(full_at_, stop);
    const std::chrono::duration<double> takes(static_cast<double>(bytes) / bytes_a_second_);
    full_at_ = std::max(full_at_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(takes);
  }
  if (stop.stop_requested()) throw Error(Code::cancelled, "the save was given up");
}

void SaveRateLimiter::rest_from_work(const std::stop_token& stop) {
  const std::uint64_t pushes = trained_->statistics().pushes;
  if (std::exchange(pushes_, pushes) != pushes && idle_.count() < 1) {
    const auto work = std::chrono::duration<double>(time_of_this_thread() - worked_);
    const auto rest = std::min<std::chrono::duration<double>>(work * (1 / kShare - 1), kLongestRest);
    sleep_until(Clock::now() + std::chrono::duration_cast<Clock::duration>(rest), stop);
  }
  worked_ = time_of_this_thread();
}

}  // namespace capstan::ps

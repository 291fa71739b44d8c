// save_pace.cpp -- a share of a core, and of a disk.
#include "store/save_pace.hpp"

#include <time.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace capstan::store {
namespace {

/// What a save takes of a core while pushes are applied and no core is idle.
constexpr double kShare = 0.04;
constexpr std::chrono::milliseconds kLongestRest{100};

std::chrono::nanoseconds time_of_this_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

SavePace::SavePace(Store& store, std::uint64_t bytes_a_second)
    : store_(store),
      worked_(time_of_this_thread()),
      bytes_a_second_(static_cast<double>(bytes_a_second)),
      full_at_(Clock::now()) {}

void SavePace::rest(std::uint64_t bytes) {
  const std::uint64_t pushes = store_.statistics().pushes;
  if (std::exchange(pushes_, pushes) != pushes && idle_.count() < 1) {
    const auto work = std::chrono::duration<double>(time_of_this_thread() - worked_);
    std::this_thread::sleep_for(
        std::min<std::chrono::duration<double>>(work * (1 / kShare - 1), kLongestRest));
  }
  if (bytes_a_second_ > 0) {
    std::this_thread::sleep_until(full_at_);
    const std::chrono::duration<double> takes(static_cast<double>(bytes) / bytes_a_second_);
    full_at_ = std::max(full_at_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(takes);
  }
  worked_ = time_of_this_thread();
}

}  // namespace capstan::store

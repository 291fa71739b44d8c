// core_distance.cpp -- two threads that store to the same cache line in turns.
#include "perf/bench/core_distance.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <thread>
#include <vector>

namespace capstan::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kRounds = 50;               // round trips per sample
constexpr std::chrono::milliseconds kDuration{20};  // of all samples

std::vector<int> usable_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void run_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  static_cast<void>(sched_setaffinity(0, sizeof set, &set));  // if it fails, the figure is that of any CPUs
}

/// Waits for each odd number in `word` and answers with the next even one, until `stop`.
void answer(std::atomic<std::uint64_t>& word, const std::stop_token& stop) {
  for (std::uint64_t number = 1;; number += 2) {
    while (word.load(std::memory_order_acquire) != number) {
      if (stop.stop_requested()) return;
    }
    word.store(number + 1, std::memory_order_release);
  }
}

}  // namespace

std::optional<double> cache_line_round_trip_ns() {
  const std::vector<int> cpus = usable_cpus();
  if (cpus.size() < 2) return std::nullopt;
  alignas(64) std::atomic<std::uint64_t> word{0};
  const std::jthread answers([&](const std::stop_token& stop) {
    run_on(cpus.back());
    answer(word, stop);
  });
  double best = std::numeric_limits<double>::infinity();
  std::jthread([&] {
    run_on(cpus.front());
    std::uint64_t number = 1;
    const auto end = Clock::now() + kDuration;
    auto begin = Clock::now();
    do {
      for (std::uint64_t i = 0; i < kRounds; ++i, number += 2) {
        word.store(number, std::memory_order_release);
        while (word.load(std::memory_order_acquire) != number + 1) {
        }
      }
      const auto now = Clock::now();
      best = std::min(best, std::chrono::duration<double, std::nano>(now - begin).count() / kRounds);
      begin = now;
    } while (begin < end);
  }).join();
  return best;
}

}  // namespace capstan::perf

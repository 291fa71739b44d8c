// idle_cores_test.cpp -- busy cores do not count as idle.
#include "base/idle_cores.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace capstan {
namespace {

TEST(IdleCores, BusyCoresAreNotIdle) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const int cores = CPU_COUNT(&allowed);
  std::atomic<int> started{0};
  std::atomic<bool> stop{false};
  std::vector<std::jthread> busy;
  for (int i = 0; i < cores; ++i)
    busy.emplace_back([&] {
      ++started;
      while (!stop) {
      }
    });
  while (started < cores) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  IdleCores idle;
  const double initial = idle.count();
  if (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(100)) {
    EXPECT_EQ(initial, 0) << "the first interval has not ended";
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // the interval that is measured
  const double count = idle.count();
  stop = true;
  EXPECT_GE(count, 0);
  EXPECT_LT(count, 0.5 * cores);
}

}  // namespace
}  // namespace capstan

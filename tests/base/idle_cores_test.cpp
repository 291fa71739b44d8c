// idle_cores_test.cpp -- cores that are kept busy are not idle.
#include "base/idle_cores.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace capstan {
namespace {

TEST(IdleCores, ThoseThatWorkAreNotAmongThem) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const int cores = CPU_COUNT(&allowed);
  std::atomic<int> begun{0};
  std::atomic<bool> over{false};
  std::vector<std::jthread> busy;
  for (int i = 0; i < cores; ++i)
    busy.emplace_back([&] {
      ++begun;
      while (!over) {
      }
    });
  while (begun < cores) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  IdleCores idle;
  const double at_once = idle.count();
  if (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(100)) {
    EXPECT_EQ(at_once, 0) << "too early to tell";
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // the interval that is measured
  const double left = idle.count();
  over = true;
  EXPECT_GE(left, 0);
  EXPECT_LT(left, 0.5 * cores);
}

}  // namespace
}  // namespace capstan

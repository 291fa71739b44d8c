// idle_cores_test.cpp -- cores that are kept busy are not idle.
#include "base/idle_cores.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

namespace capstan {
namespace {

TEST(IdleCores, ThoseThatWorkAreNotAmongThem) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const int cores = CPU_COUNT(&allowed);
  IdleCores idle;
  EXPECT_EQ(idle.count(), 0) << "too early to tell";
  std::atomic<bool> over{false};
  std::vector<std::jthread> busy;
  for (int i = 0; i < cores; ++i)
    busy.emplace_back([&] {
      while (!over) {
      }
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const double left = idle.count();
  over = true;
  EXPECT_GE(left, 0);
  EXPECT_LT(left, 0.5 * cores);
}

}  // namespace
}  // namespace capstan

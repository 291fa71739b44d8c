// doorbell_test.cpp -- one fabric ends the wait of another without a message.
#include "transport/doorbell.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "support/asleep.hpp"
#include "transport/ucx/fabric.hpp"

namespace capstan::transport {
namespace {

using std::chrono::milliseconds;

/// Timeout of a wait that only an event may end.
constexpr std::chrono::hours kForever{1};

milliseconds time_of_wait(Fabric& fabric, milliseconds timeout) {
  const auto begin = std::chrono::steady_clock::now();
  fabric.wait(timeout);
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
}

void progress_for(Fabric& fabric, milliseconds time) {
  progress_until(fabric, deadline_in(time), [] { return false; });
}

/// Lets UCX finish its initial work, which would end a wait.
void settle(Fabric& fabric) {
  constexpr milliseconds kQuiet{20};
  do {
    progress_for(fabric, kQuiet);
  } while (time_of_wait(fabric, kQuiet) < kQuiet - milliseconds(1));
}

TEST(DoorbellTest, EndsTheWaitOfAnotherFabric) {
  UcxFabric sleeper;
  UcxFabric signaler;
  settle(sleeper);
  std::atomic<bool> signaled{false};
  const std::jthread thread([&, waiting = gettid()] {
    EXPECT_TRUE(wait_until_asleep(waiting));
    signaled = true;
    EXPECT_TRUE(signaler.signal(sleeper.doorbell()));
  });
  sleeper.wait(kForever);
  EXPECT_TRUE(signaled);
}

TEST(DoorbellTest, SignalBeforeAWaitEndsOnlyTheNextOne) {
  UcxFabric sleeper;
  UcxFabric signaler;
  settle(sleeper);
  for (int i = 0; i < 1000; ++i)
    EXPECT_TRUE(signaler.signal(sleeper.doorbell())) << "already signaled: " << i;
  sleeper.wait(kForever);
  progress_for(sleeper, milliseconds(20));
  EXPECT_GE(time_of_wait(sleeper, milliseconds(60)), milliseconds(55));
}

TEST(DoorbellTest, ReportsAMissingDoorbell) {
  Doorbell mine;
  std::string gone;
  {
    const Doorbell other;
    gone = other.name();
    EXPECT_TRUE(mine.signal(gone));
  }
  EXPECT_FALSE(mine.signal(gone));
  EXPECT_FALSE(mine.signal("capstan-missing"));
  EXPECT_FALSE(mine.signal(""));
}

TEST(DoorbellTest, EveryDoorbellHasItsOwnName) {
  const Doorbell a;
  const Doorbell b;
  EXPECT_NE(a.name(), b.name());
}

}  // namespace
}  // namespace capstan::transport

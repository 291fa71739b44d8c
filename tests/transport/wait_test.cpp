// wait_test.cpp -- events that end a wait, and its duration.
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/asleep.hpp"
#include "transport/networks.hpp"

namespace capstan::transport {
namespace {

using std::chrono::milliseconds;

/// Timeout of a wait that only an event may end.
constexpr std::chrono::hours kVeryLong{1};

using WaitTest = NetworkTest;

class Stopwatch {
 public:
  milliseconds read() const {
    return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start_);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Lets UCX finish its initial work, which would end a wait.
void settle_down(Fabric& fabric) {
  constexpr milliseconds kQuiet{20};
  for (bool quiet = false; !quiet;) {
    progress_until(fabric, deadline_in(kQuiet), [] { return false; });
    const Stopwatch watch;
    fabric.wait(kQuiet);
    quiet = watch.read() >= kQuiet - milliseconds(1);
  }
}

TEST(DeadlineIn, Saturates) { EXPECT_EQ(deadline_in(milliseconds::max()), Deadline::max()); }

TEST_P(WaitTest, EndsAtTheTimeout) {
  const auto a = open(0);
  settle_down(*a);
  const Stopwatch watch;
  a->wait(milliseconds(60));
  EXPECT_GE(watch.read(), milliseconds(55));
}

TEST_P(WaitTest, EndsWhenAnotherThreadWakesTheFabric) {
  const auto a = open(0);
  settle_down(*a);
  std::atomic<bool> woken{false};
  const std::jthread waker([&, waiting = gettid()] {
    EXPECT_TRUE(wait_until_asleep(waiting));
    woken = true;
    a->wake();
  });
  a->wait(kVeryLong);
  EXPECT_TRUE(woken);
}

TEST_P(WaitTest, WakeBeforeAWaitEndsOnlyTheNextOne) {
  const auto a = open(0);
  settle_down(*a);
  a->wake();
  a->wake();
  a->wait(kVeryLong);
  progress_until(*a, deadline_in(milliseconds(20)), [] { return false; });
  const Stopwatch second;
  a->wait(milliseconds(60));
  EXPECT_GE(second.read(), milliseconds(55));
}

TEST_P(WaitTest, EndsWhenAMessageArrives) {
  const auto a = open(0);
  const auto b = open(1);
  std::atomic<int> heard{0};
  b->on_message(1, [&](const Message&) { ++heard; });
  Peer& to_b = connect(*a, *b, "b");
  to_b.send(1, {});  // connects, which takes several rounds
  {
    const Progressing sender(*a);
    ASSERT_TRUE(progress_until(*b, deadline_in(kTimeout), [&] { return heard == 1; }));
  }
  settle_down(*b);
  const std::jthread sender([&, waiting = gettid()] {
    EXPECT_TRUE(wait_until_asleep(waiting));
    to_b.send(1, {});
    progress_until(*a, deadline_in(kTimeout), [&] { return heard == 2; });
  });
  while (heard < 2) {
    b->wait(kVeryLong);
    b->progress();
  }
}

TEST_P(WaitTest, ProgressUntilReturnsAtItsDeadline) {
  const auto a = open(0);
  const Stopwatch watch;
  EXPECT_FALSE(progress_until(*a, deadline_in(milliseconds(70)), [] { return false; }));
  EXPECT_GE(watch.read(), milliseconds(69));
  EXPECT_TRUE(progress_until(*a, deadline_in(milliseconds(-5)), [] { return true; }));
}

CAPSTAN_ON_BOTH_NETWORKS(WaitTest);

}  // namespace
}  // namespace capstan::transport

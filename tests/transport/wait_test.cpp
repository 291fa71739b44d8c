// wait_test.cpp -- what ends a wait, and how long one lasts.
#include <gtest/gtest.h>

#include "transport/networks.hpp"

namespace capstan::transport {
namespace {

using std::chrono::milliseconds;
using WaitTest = NetworkTest;

class Stopwatch {
 public:
  milliseconds read() const {
    return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start_);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// UCX has something to do at first; a wait that nothing ends needs that to be over.
void settle(Fabric& fabric) {
  progress_until(fabric, deadline_in(milliseconds(20)), [] { return false; });
}

TEST_P(WaitTest, EndsWhenTheTimeIsOver) {
  const auto a = open(0);
  settle(*a);
  const Stopwatch watch;
  a->wait(milliseconds(60));
  EXPECT_GE(watch.read(), milliseconds(55));
  EXPECT_LT(watch.read(), kPatience);
}

TEST_P(WaitTest, EndsWhenAnotherThreadWakes) {
  const auto a = open(0);
  settle(*a);
  const Stopwatch watch;
  const std::jthread waker([&] {
    std::this_thread::sleep_for(milliseconds(30));
    a->wake();
  });
  a->wait(kPatience);
  EXPECT_LT(watch.read(), kPatience / 2);
}

TEST_P(WaitTest, AWakeThatComesFirstEndsTheNextWaitAndNoMore) {
  const auto a = open(0);
  settle(*a);
  a->wake();
  a->wake();
  const Stopwatch first;
  a->wait(kPatience);
  EXPECT_LT(first.read(), kPatience / 2);
  settle(*a);
  const Stopwatch second;
  a->wait(milliseconds(60));
  EXPECT_GE(second.read(), milliseconds(55));
}

TEST_P(WaitTest, EndsWhenAMessageArrives) {
  const auto a = open(0);
  const auto b = open(1);
  int heard = 0;
  b->on_message(1, [&](const Message&) { ++heard; });
  Peer& to_b = connect(*a, *b, "b");
  to_b.send(1, {});  // the connection itself takes several rounds
  {
    const Progressing sender(*a);
    ASSERT_TRUE(progress_until(*b, deadline_in(kPatience), [&] { return heard == 1; }));
  }
  settle(*b);
  const Stopwatch watch;
  const std::jthread sender([&] {
    std::this_thread::sleep_for(milliseconds(30));
    to_b.send(1, {});
    progress_until(*a, deadline_in(milliseconds(100)), [] { return false; });
  });
  while (heard < 2 && watch.read() < kPatience) {
    b->wait(kPatience);
    b->progress();
  }
  EXPECT_EQ(heard, 2);
  EXPECT_LT(watch.read(), kPatience / 2);
}

TEST_P(WaitTest, ProgressUntilGivesUpAtItsDeadline) {
  const auto a = open(0);
  const Stopwatch watch;
  EXPECT_FALSE(progress_until(*a, deadline_in(milliseconds(70)), [] { return false; }));
  EXPECT_GE(watch.read(), milliseconds(69));
  EXPECT_LT(watch.read(), kPatience / 2);
  EXPECT_TRUE(progress_until(*a, deadline_in(milliseconds(-5)), [] { return true; }));
}

CAPSTAN_ON_BOTH_NETWORKS(WaitTest);

}  // namespace
}  // namespace capstan::transport

// control_loop_test.cpp -- who drives a fabric when several threads want something of it; whose heartbeats
// fail to come.
#include "coordinator/scheduling/control_loop.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cluster/membership/failure_detector.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint16_t kCount = 7;

/// Counts the messages that another fabric sends it.
class ControlLoopTest : public testing::Test {
 protected:
  ControlLoopTest() {
    here_->set_rank(0);
    there_->set_rank(1);
    here_->on_message(kCount, [this](const transport::Message&) { ++count_; });
    peer_ = &there_->connect(0, "the loop", here_->address());
  }
  void start() {
    loop_.start([] {});
  }
  void send() { peer_->send(kCount, {}); }
  bool wait_for(int count, milliseconds patience = seconds(20)) {
    return loop_.wait([this, count] { return count_ >= count; }, Waiter::Deadline::clock::now() + patience);
  }

  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> here_ = hub_.open();
  std::unique_ptr<transport::Fabric> there_ = hub_.open();
  transport::Peer* peer_ = nullptr;
  std::atomic<int> count_{0};
  std::atomic<int> rounds_{0};
  std::atomic<int> at_once_{0};
  ControlLoop loop_{*here_,
                    [this] {
                      EXPECT_EQ(at_once_.fetch_add(1), 0) << "two threads drive";
                      ++rounds_;
                      const bool any = here_->progress() != 0;
                      --at_once_;
                      return ControlLoop::Round{any};
                    },
                    {std::chrono::microseconds(50), std::chrono::microseconds(50)}};
};

TEST_F(ControlLoopTest, WhoWaitsDrives) {
  send();
  EXPECT_TRUE(wait_for(1));
  EXPECT_FALSE(wait_for(2, milliseconds(5)));
}

TEST_F(ControlLoopTest, AThreadThatSleepsIsWokenByWhatComes) {
  const std::jthread sender([this] {
    while (rounds_ == 0) std::this_thread::yield();  // the waiting thread drives
    send();
  });
  EXPECT_TRUE(wait_for(1));
}

TEST_F(ControlLoopTest, TheKeeperDrivesWhileNobodyWaits) {
  start();
  for (int i = 1; i <= 3; ++i) {
    send();
    while (count_ < i) std::this_thread::yield();
  }
  EXPECT_TRUE(wait_for(3));
  send();  // it drives again
  while (count_ < 4) std::this_thread::yield();
}

TEST_F(ControlLoopTest, ANudgeMakesARoundByTheThreadThatGivesIt) {
  const int before = rounds_;
  loop_.nudge();
  EXPECT_GT(rounds_, before);
  start();
  for (int i = 0; i < 100; ++i) {
    const int seen = rounds_;
    loop_.nudge();
    // Or by the keeper, when it was in one.
    while (rounds_ == seen) std::this_thread::yield();
  }
}

TEST_F(ControlLoopTest, SeveralThreadsWaitForDifferentThings) {
  start();
  std::atomic<int> ended{0};
  std::vector<std::jthread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([this, t, &ended] {
      for (int round = 0; round < 50; ++round) EXPECT_TRUE(wait_for(round * 4 + t));
      ++ended;
    });
  }
  while (ended < 4) {
    if (count_ < 200) send();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

TEST_F(ControlLoopTest, AWaitHasItsDeadlineWhoeverDrives) {
  start();
  std::jthread leader([this] { EXPECT_TRUE(wait_for(1)); });
  EXPECT_FALSE(wait_for(1, milliseconds(10)));
  send();
}

TEST_F(ControlLoopTest, TheEndEndsEveryWait) {
  start();
  std::array<std::atomic<bool>, 3> waits{};
  std::vector<std::jthread> threads;  // which end before what they look at
  for (std::atomic<bool>& mine : waits) {
    threads.emplace_back([this, &mine] {
      const auto never = [&mine] {
        mine = true;
        return false;
      };
      EXPECT_FALSE(loop_.wait(never, std::nullopt));
    });
  }
  for (const std::atomic<bool>& one : waits) {
    while (!one) std::this_thread::yield();
  }
  loop_.stop();
}

/// A second's timeout, and a clock that the test moves.
class HeartbeatsTest : public testing::Test {
 protected:
  using Ranks = std::vector<int>;
  /// Looks as often as it should, for so long, while the given ranks beat.
  Ranks pass(milliseconds time, const Ranks& beating = {}) {
    Ranks silent;
    for (const auto end = now_ + time; now_ < end;) {
      now_ += heartbeats_.period();
      for (const int rank : beating) heartbeats_.heard(rank, now_);
      for (const int rank : heartbeats_.silent(now_)) silent.push_back(rank);
    }
    return silent;
  }

  cluster::FailureDetector heartbeats_{seconds(1)};
  cluster::FailureDetector::Clock::time_point now_ = cluster::FailureDetector::Clock::now();
};

TEST_F(HeartbeatsTest, WhoFallsSilentIsNamedOnceAndWithinTheTimeout) {
  for (const int rank : {1, 2, 3}) heartbeats_.heard(rank, now_);
  EXPECT_EQ(pass(seconds(10), {1, 2, 3}), Ranks{});
  EXPECT_EQ(pass(milliseconds(600), {1, 3}), Ranks{});
  EXPECT_EQ(pass(milliseconds(400), {1, 3}), Ranks{2});
  EXPECT_EQ(pass(seconds(2), {1, 2, 3}), Ranks{}) << "what is heard of the dead means nothing";
  EXPECT_EQ(pass(seconds(2), {2}), (Ranks{1, 3}));
}

TEST_F(HeartbeatsTest, WhoHasNeverBeatenOrIsKnownToBeDeadIsNotMissed) {
  EXPECT_EQ(pass(seconds(5)), Ranks{});
  heartbeats_.heard(1, now_);
  heartbeats_.forget(1);
  heartbeats_.heard(1, now_);
  EXPECT_EQ(pass(seconds(5)), Ranks{});
}

TEST_F(HeartbeatsTest, TimeInWhichNobodyLookedIsNobodysSilence) {
  for (const int rank : {1, 2}) heartbeats_.heard(rank, now_);
  EXPECT_EQ(pass(seconds(1), {1, 2}), Ranks{});
  now_ += seconds(30);  // this process was stopped
  EXPECT_EQ(pass(milliseconds(600)), Ranks{});
  EXPECT_EQ(pass(milliseconds(800), {1}), Ranks{2});
}

TEST_F(HeartbeatsTest, NothingIsWatchedWithoutATimeout) {
  heartbeats_ = cluster::FailureDetector(milliseconds(0));
  EXPECT_FALSE(heartbeats_.on());
  heartbeats_.heard(1, now_);
  EXPECT_EQ(heartbeats_.silent(now_ + seconds(1000)), Ranks{});
}

}  // namespace
}  // namespace capstan::coordinator

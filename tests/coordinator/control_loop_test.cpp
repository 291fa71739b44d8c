// control_loop_test.cpp -- tests which thread drives a fabric while several threads wait for its messages.
#include "coordinator/scheduling/control_loop.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "transport/loop/loop.hpp"

namespace capstan::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint16_t kCount = 7;

/// A control loop that counts messages from another fabric.
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
  bool wait_for(int count, milliseconds timeout = seconds(20)) {
    return loop_.wait([this, count] { return count_ >= count; }, Waiter::Deadline::clock::now() + timeout);
  }

  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> here_ = hub_.open();
  std::unique_ptr<transport::Fabric> there_ = hub_.open();
  transport::Peer* peer_ = nullptr;
  std::atomic<int> count_{0};
  const std::thread::id test_thread_ = std::this_thread::get_id();
  std::atomic<int> rounds_{0};
  std::atomic<int> rounds_of_others_{0};
  std::atomic<int> at_once_{0};
  ControlLoop loop_{*here_,
                    [this] {
                      EXPECT_EQ(at_once_.fetch_add(1), 0) << "two threads drive the fabric";
                      ++rounds_;
                      if (std::this_thread::get_id() != test_thread_) ++rounds_of_others_;
                      const bool any = here_->progress() != 0;
                      --at_once_;
                      return ControlLoop::Round{any};
                    },
                    {std::chrono::microseconds(50), std::chrono::microseconds(50)}};
};

TEST_F(ControlLoopTest, WaitingThreadDrivesTheFabric) {
  send();
  EXPECT_TRUE(wait_for(1));
  EXPECT_FALSE(wait_for(2, milliseconds(5)));
}

TEST_F(ControlLoopTest, MessageWakesASleepingThread) {
  const std::jthread sender([this] {
    while (rounds_ == 0) std::this_thread::yield();  // the waiting thread drives
    send();
  });
  EXPECT_TRUE(wait_for(1));
}

TEST_F(ControlLoopTest, KeeperDrivesWhileNoThreadWaits) {
  start();
  for (int i = 1; i <= 3; ++i) {
    send();
    while (count_ < i) std::this_thread::yield();
  }
  EXPECT_TRUE(wait_for(3));
  send();  // the keeper drives again
  while (count_ < 4) std::this_thread::yield();
}

TEST_F(ControlLoopTest, NudgeRunsARound) {
  const int before = rounds_;
  loop_.nudge();
  EXPECT_GT(rounds_, before);
  start();
  for (int i = 0; i < 100; ++i) {
    const int seen = rounds_;
    loop_.nudge();
    // If the keeper is in a round, it runs another one.
    while (rounds_ == seen) std::this_thread::yield();
  }
}

/// Nudges and sends messages in turns; the next nudge receives the message. The keeper must not run a round
/// unless the nudging thread loses its core for a while, which spoils an attempt.
TEST_F(ControlLoopTest, KeeperRestsWhileNudgesAreFrequent) {
  using Clock = Waiter::Deadline::clock;
  constexpr std::chrono::microseconds kRests{100};
  start();
  int attempts = 0;
  for (int attempt = 0; attempt < 1000 && attempts < 3; ++attempt) {
    int before = 0;
    bool frequent = true;
    auto last = Clock::now();
    for (int i = 0; i < 20; ++i) {
      loop_.nudge();
      frequent = frequent && (i == 0 || Clock::now() - last < kRests);
      if (i == 10) before = rounds_of_others_;
      last = Clock::now();
      send();
      while (Clock::now() < last + kRests / 4) {
      }
    }
    if (!frequent) continue;
    ++attempts;
    ASSERT_EQ(rounds_of_others_, before);
  }
  if (attempts == 0) GTEST_SKIP() << "this thread lost its core in every attempt";
  const int seen = count_;
  send();
  while (count_ == seen) std::this_thread::yield();  // the keeper leads again
}

TEST_F(ControlLoopTest, KeeperLeadsSoonAfterAnAnnouncement) {
  start();
  for (int i = 1; i <= 3; ++i) {
    send();
    EXPECT_TRUE(wait_for(2 * i - 1));
    loop_.nudge_soon();
    send();
    while (count_ < 2 * i) std::this_thread::yield();
  }
}

TEST_F(ControlLoopTest, SeveralThreadsWaitForDifferentConditions) {
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
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // some messages arrive while all wait
  }
}

TEST_F(ControlLoopTest, WaitEndsAtItsDeadlineWhileAnotherThreadDrives) {
  start();
  std::jthread leader([this] { EXPECT_TRUE(wait_for(1)); });
  EXPECT_FALSE(wait_for(1, milliseconds(10)));
  send();
}

TEST_F(ControlLoopTest, StopEndsEveryWait) {
  start();
  std::array<std::atomic<bool>, 3> waits{};
  std::vector<std::jthread> threads;  // destroyed before the objects that they use
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
  const int rounds = rounds_;
  threads.clear();
  EXPECT_EQ(rounds_, rounds) << "a thread ran a round after stop() had returned";
}

TEST_F(ControlLoopTest, StopWaitsForARoundInProgress) {
  start();
  std::atomic<bool> in_done{false}, may_end{false};
  std::jthread waiter([&] {
    EXPECT_FALSE(loop_.wait(
        [&] {
          in_done = true;
          while (!may_end) std::this_thread::yield();
          return false;
        },
        std::nullopt));
  });
  while (!in_done) std::this_thread::yield();
  std::atomic<bool> stopped{false};
  std::jthread ender([&] {
    loop_.stop();
    stopped = true;
  });
  EXPECT_FALSE(stopped) << "a thread is still in a round";
  may_end = true;
  ender.join();
  EXPECT_TRUE(stopped);
}

}  // namespace
}  // namespace capstan::coordinator

// replica_watch_test.cpp -- when a ps abandons its replica, and when it has to stop.
#include "ps/durability/replica_watch.hpp"

#include <gtest/gtest.h>

#include "transport/loop/loop.hpp"
#include "transport/message_types.hpp"

namespace capstan::ps {
namespace {

using std::chrono::milliseconds;

class ReplicaWatchTest : public testing::Test {
 protected:
  static constexpr milliseconds kSilence{1000};
  static constexpr milliseconds kWait{5000};

  void send_record() { stream_.call(transport::kWorkerDead, 1, {}); }
  void acknowledge(std::uint64_t number, bool busy = false) {
    watch_.on_progress({number, 0, busy ? 1U : 0U}, now_);
  }
  /// Polls every 50 ms for `time`.
  void poll_for(milliseconds time, bool coordinator_connected = true) {
    for (milliseconds passed{0}; passed < time; passed += milliseconds(50)) {
      now_ += milliseconds(50);
      watch_.poll(now_, coordinator_connected);
    }
  }

  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> ps_ = hub_.open();
  std::unique_ptr<transport::Fabric> replica_ = hub_.open();
  ReplicaStream stream_{ps_->connect(2, "replica", replica_->address())};
  int requests_ = 0;
  ReplicaWatch::Clock::time_point now_ = ReplicaWatch::Clock::now();
  ReplicaWatch watch_{stream_, {.silence = kSilence, .wait = kWait}, [this] { ++requests_; }};
};

TEST_F(ReplicaWatchTest, NeverAbandonsAReplicaWithoutPendingRecords) {
  poll_for(10 * kWait);
  send_record();
  acknowledge(1);
  poll_for(10 * kWait);
  EXPECT_EQ(requests_, 0);
  EXPECT_TRUE(watch_.settled());
}

TEST_F(ReplicaWatchTest, AbandonsAReplicaThatDoesNotAcknowledge) {
  send_record();
  acknowledge(1);
  poll_for(kSilence);
  send_record();
  EXPECT_FALSE(watch_.settled());
  poll_for(kSilence);
  EXPECT_EQ(requests_, 0);
  poll_for(kSilence / 2);
  EXPECT_GE(requests_, 1);
}

TEST_F(ReplicaWatchTest, WaitsLongerForAReplicaThatMayBeStarting) {
  send_record();
  poll_for(kWait);
  EXPECT_EQ(requests_, 0);
  poll_for(kWait / 2);
  EXPECT_GE(requests_, 1);
}

TEST_F(ReplicaWatchTest, WaitsLongerForABusyReplica) {
  send_record();
  acknowledge(0, /*busy=*/true);
  poll_for(10 * kWait);
  EXPECT_EQ(requests_, 0);
  poll_for(3 * kWait);
  EXPECT_GE(requests_, 1);
}

TEST_F(ReplicaWatchTest, IgnoresTheTimeForWhichThePsItselfWasStopped) {
  send_record();
  acknowledge(1);
  poll_for(kSilence);
  send_record();
  poll_for(kSilence / 2);
  now_ += 10 * kSilence;
  watch_.poll(now_, true);
  EXPECT_EQ(requests_, 0);
  acknowledge(2);
  poll_for(kSilence);
  EXPECT_EQ(requests_, 0);
}

TEST_F(ReplicaWatchTest, IsSettledOnlyOnceAnAbandonedReplicaIsDropped) {
  watch_.abandon("test", now_);
  EXPECT_FALSE(watch_.settled()) << "it may have diverged";
  stream_.drop();
  EXPECT_TRUE(watch_.settled());
  poll_for(2 * kWait);
  EXPECT_EQ(requests_, 1);
  EXPECT_FALSE(watch_.consent_overdue());
}

TEST_F(ReplicaWatchTest, RepeatsTheRequestAndStopsWithoutConsent) {
  watch_.abandon("test", now_);
  watch_.abandon("again", now_);
  EXPECT_EQ(requests_, 1);
  poll_for(kWait);
  EXPECT_GT(requests_, 5);
  EXPECT_FALSE(watch_.consent_overdue());
  poll_for(milliseconds(100));
  EXPECT_TRUE(watch_.consent_overdue());
}

TEST_F(ReplicaWatchTest, RestartsTheConsentTimeoutForANewCoordinator) {
  watch_.abandon("test", now_);
  poll_for(2 * kWait, /*coordinator_connected=*/false);
  EXPECT_EQ(requests_, 1);
  EXPECT_FALSE(watch_.consent_overdue());
  watch_.on_coordinator_returned(now_);
  EXPECT_EQ(requests_, 2);
  poll_for(kWait);
  EXPECT_FALSE(watch_.consent_overdue());
}

}  // namespace
}  // namespace capstan::ps

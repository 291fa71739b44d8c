// worker_heartbeat_test.cpp -- sends a worker's heartbeats, and suspects a silent coordinator.
#include "coordinator/worker/worker_heartbeat.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "transport/loop/loop.hpp"
#include "transport/message_types.hpp"

namespace capstan::coordinator {
namespace {

using std::chrono::milliseconds;

class WorkerHeartbeatTest : public testing::Test {
 protected:
  WorkerHeartbeatTest() {
    coordinator_->set_rank(0);
    coordinator_->on_message(transport::kHeartbeat, [this](const transport::Message&) { ++heartbeats_; });
    auto control = hub_.open();
    auto data = hub_.open();
    cluster::Table table;
    table.members = {{0, Role::coordinator, 0, "here", 0, coordinator_->address(), coordinator_->address()},
                     {1, Role::worker, 0, "here", 0, control->address(), data->address()}};
    table.rank = 1;
    runtime_ = std::make_unique<cluster::Runtime>(Settings(), table, std::move(control), std::move(data));
    peer_ = &runtime_->control_peer(runtime_->member(0));
  }
  int heartbeats() {
    coordinator_->progress();
    return heartbeats_;
  }

  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> coordinator_ = hub_.open();
  std::unique_ptr<cluster::Runtime> runtime_;
  transport::Peer* peer_ = nullptr;
  int heartbeats_ = 0;
};

TEST_F(WorkerHeartbeatTest, SendsOnePerPeriod) {
  WorkerHeartbeat heartbeat(*runtime_);
  const auto now = WorkerHeartbeat::Clock::now();
  const auto next = heartbeat.send(*peer_, now);
  EXPECT_EQ(next - now,
            cluster::FailureDetector::period_of(runtime_->settings().duration("heartbeat-timeout")));
  EXPECT_EQ(heartbeat.send(*peer_, next - milliseconds(1)), next);
  EXPECT_EQ(heartbeats(), 1);
  EXPECT_GT(heartbeat.send(*peer_, next), next);
  EXPECT_EQ(heartbeats(), 2);
}

TEST_F(WorkerHeartbeatTest, SuspectsACoordinatorThatStopsAnswering) {
  WorkerHeartbeat heartbeat(*runtime_);
  const auto period = cluster::FailureDetector::period_of(runtime_->settings().duration("heartbeat-timeout"));
  auto now = WorkerHeartbeat::Clock::now();
  const auto silent_until_suspected = [&] {
    const auto end = now + 20 * (runtime_->wait_timeout() + 11 * period);
    while (now < end && !heartbeat.suspects(0, now)) now += period;
    return now < end;
  };
  EXPECT_FALSE(silent_until_suspected()) << "it has never replied";
  heartbeat.heard(0, now);
  EXPECT_FALSE(heartbeat.suspects(0, now + period));
  EXPECT_TRUE(silent_until_suspected());
  heartbeat.forget(0);
  EXPECT_FALSE(heartbeat.suspects(0, now)) << "another coordinator has not replied yet";
}

}  // namespace
}  // namespace capstan::coordinator

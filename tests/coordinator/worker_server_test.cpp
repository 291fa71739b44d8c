// worker_server_test.cpp -- what a worker makes of messages that come at an odd moment.
#include "coordinator/worker_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/message_types.hpp"
#include "transport/bytes.hpp"
#include "transport/loop.hpp"

namespace capstan::coordinator {
namespace {

using cluster::Member;

/// A coordinator that does what the test says, and a worker that comes in by the late door.
class LateWorkerTest : public testing::Test {
 protected:
  LateWorkerTest() {
    coordinator_->set_rank(0);
    coordinator_->on_message(cluster::kGivenBack, [this](const transport::Message& message) {
      given_back_.push_back(from_bytes<std::vector<std::uint64_t>>(message.payload));
    });
    coordinator_->on_message(cluster::kHello, [this](const transport::Message&) { greeted_ = true; });
    coordinator_->on_message(cluster::kHeartbeat, [](const transport::Message&) {});
    cluster::Table table;
    table.members = {{0, Role::coordinator, 0, "here", 0, coordinator_->address(), coordinator_->address()}};
    table.late = 1;
    auto control = hub_.open();
    auto data = hub_.open();
    const Member late{table.rank_of_late(1), Role::worker, 0, "here", 0, control->address(), data->address()};
    table.rank = late.rank;
    worker_ = &coordinator_->connect(late.rank, late.name(), late.control_address);
    runtime_ =
        std::make_shared<cluster::Runtime>(Settings(), table, std::move(control), std::move(data), late);
  }
  /// What was sent before is what the worker finds when it first looks.
  void start() {
    thread_ = std::jthread([runtime = std::move(runtime_)] { WorkerServer(runtime).run(); });
  }
  template <class Condition>
  bool wait_for(const Condition& condition) {
    return transport::progress_until(*coordinator_, transport::deadline_in(std::chrono::seconds(20)),
                                     condition);
  }
  void TearDown() override { worker_->send(cluster::kShutdown, {}); }

  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> coordinator_ = hub_.open();
  transport::Peer* worker_ = nullptr;
  std::shared_ptr<cluster::Runtime> runtime_;
  std::vector<std::vector<std::uint64_t>> given_back_;
  bool greeted_ = false;
  std::jthread thread_;
};

// It used to answer before it had connected to the coordinator, and died of that.
TEST_F(LateWorkerTest, MayBeAskedForClosuresTogetherWithTheGreeting) {
  worker_->send(cluster::kHello, {});
  worker_->send(cluster::kGiveBack, transport::as_bytes(GiveBackHeader{2}));
  start();
  EXPECT_TRUE(wait_for([this] { return greeted_ && !given_back_.empty(); }));
  EXPECT_EQ(given_back_, std::vector<std::vector<std::uint64_t>>(1)) << "it has none";
}

}  // namespace
}  // namespace capstan::coordinator

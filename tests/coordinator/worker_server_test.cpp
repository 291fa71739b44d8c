// worker_server_test.cpp -- messages that arrive at a worker at unusual moments.
#include "coordinator/worker/worker_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "capstan/cancellation.hpp"
#include "capstan/detail/remote_function.hpp"
#include "transport/bytes.hpp"
#include "transport/loop/loop.hpp"
#include "transport/message_types.hpp"

namespace capstan::coordinator {
namespace {

using cluster::Member;

/// A coordinator that the test controls, and a worker that starts later.
class LateWorkerTest : public testing::Test {
 protected:
  LateWorkerTest() {
    coordinator_->set_rank(0);
    coordinator_->on_message(transport::kGivenBack, [this](const transport::Message& message) {
      given_back_.push_back(from_bytes<std::vector<std::uint64_t>>(message.payload));
    });
    coordinator_->on_message(transport::kClosuresDone, [this](const transport::Message& message) {
      Reader in(message.payload);
      while (in.left() > 0) {
        const auto header = read<protocol::DoneHeader>(in);
        (void)in.view(header.result_bytes);
        ended_.emplace_back(header.id, static_cast<Code>(header.code));
      }
    });
    coordinator_->on_message(transport::kHello, [this](const transport::Message&) { greeted_ = true; });
    coordinator_->on_message(transport::kHeartbeat, [](const transport::Message&) {});
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
  /// Starts the worker. Messages that were sent before are pending when it first polls.
  void start() {
    thread_ = std::jthread([runtime = std::move(runtime_)] { WorkerServer(runtime).run(); });
  }
  struct Run {
    std::uint64_t id;
    std::uint32_t function;
  };
  /// Sends the greeting of a coordinator that was never restarted.
  void send_hello() { worker_->send(transport::kHello, transport::as_bytes(std::int32_t{0})); }
  /// Sends functions without arguments, as a coordinator that knows of `failures` failures.
  void send(const std::vector<Run>& runs, std::uint64_t failures) {
    std::vector<std::byte> batch;
    for (const Run& run : runs) {
      const protocol::RunHeader header{
          .id = run.id,
          .function = run.function,
          .pinned = static_cast<std::uint8_t>(run.id < protocol::kForOneWorker ? 0 : 1)};
      const auto bytes = transport::as_bytes(header);
      batch.insert(batch.end(), bytes.begin(), bytes.end());
    }
    const protocol::BatchHeader header{.closures = runs.size(), .failures = failures};
    worker_->send(transport::kRunClosures, transport::as_bytes(header), batch);
  }
  template <class Condition>
  bool wait_for(const Condition& condition) {
    return transport::progress_until(*coordinator_, transport::deadline_in(std::chrono::seconds(20)),
                                     condition);
  }
  void TearDown() override { worker_->send(transport::kShutdown, {}); }

  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> coordinator_ = hub_.open();
  transport::Peer* worker_ = nullptr;
  std::shared_ptr<cluster::Runtime> runtime_;
  std::vector<std::vector<std::uint64_t>> given_back_;
  std::vector<std::pair<std::uint64_t, Code>> ended_;
  bool greeted_ = false;
  std::jthread thread_;
};

// The worker must not reply before it has connected to the coordinator.
TEST_F(LateWorkerTest, AcceptsARequestThatArrivesWithTheGreeting) {
  send_hello();
  worker_->send(transport::kGiveBack, transport::as_bytes(protocol::GiveBackHeader{2}));
  start();
  EXPECT_TRUE(wait_for([this] { return greeted_ && !given_back_.empty(); }));
  EXPECT_EQ(given_back_, std::vector<std::vector<std::uint64_t>>(1)) << "it holds no closures";
}

void succeed_on_worker() {}
void fail_on_worker() { throw Error(Code::invalid_argument, "a test"); }
constexpr auto kSucceed = [] { return detail::Registered<&succeed_on_worker>::number; };
constexpr auto kFail = [] { return detail::Registered<&fail_on_worker>::number; };
std::atomic<int> waiting_on_worker{0};
void await_cancellation_on_worker() {
  ++waiting_on_worker;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!cancelled() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  throw_if_cancelled();
}
constexpr auto kAwaitCancellation = [] { return detail::Registered<&await_cancellation_on_worker>::number; };
using Given = std::vector<std::vector<std::uint64_t>>;
using Ended = std::vector<std::pair<std::uint64_t, Code>>;

TEST_F(LateWorkerTest, ReturnsUnstartedClosuresWhenAFunctionFails) {
  send_hello();
  constexpr std::uint64_t kAlone = protocol::kForOneWorker;
  send({{1, kSucceed()}, {2, kFail()}, {3, kSucceed()}, {kAlone, kSucceed()}, {4, kSucceed()}}, 0);
  start();
  ASSERT_TRUE(wait_for([this] { return ended_.size() == 3 && !given_back_.empty(); }));
  EXPECT_EQ(ended_, (Ended{{1, Code::ok}, {2, Code::invalid_argument}, {kAlone, Code::ok}}));
  EXPECT_EQ(given_back_, (Given{{4, 3}}));
  // One batch sent before the coordinator knew of the failure, and one after.
  send({{5, kSucceed()}, {kAlone + 1, kSucceed()}, {6, kSucceed()}}, 0);
  ASSERT_TRUE(wait_for([this] { return ended_.size() == 4 && given_back_.size() == 2; }));
  EXPECT_EQ(ended_.back(), std::pair(kAlone + 1, Code::ok));
  EXPECT_EQ(given_back_.back(), (std::vector<std::uint64_t>{6, 5}));
  send({{7, kSucceed()}}, 1);
  ASSERT_TRUE(wait_for([this] { return ended_.size() == 5; }));
  EXPECT_EQ(ended_.back(), std::pair(std::uint64_t{7}, Code::ok));
}

// The coordinator sends such requests after an error of another worker, and at a function's deadline.
TEST_F(LateWorkerTest, CancelsTheRunningFunctionByItsNumber) {
  send_hello();
  start();
  std::uint64_t id = 10;
  for (const protocol::GiveBackHeader& request :
       {protocol::GiveBackHeader{0, 11, 0}, protocol::GiveBackHeader{0, 0, 11}}) {
    waiting_on_worker = 0;
    send({{id, kAwaitCancellation()}}, id - 10);
    ASSERT_TRUE(wait_for([] { return waiting_on_worker == 1; }));
    const std::size_t given = given_back_.size();
    worker_->send(transport::kGiveBack, transport::as_bytes(protocol::GiveBackHeader{
                                            5, id, id - 1}));  // numbers of other functions
    ASSERT_TRUE(wait_for([&] { return given_back_.size() == given + 1; }));
    EXPECT_EQ(ended_.size(), id - 10);
    worker_->send(transport::kGiveBack, transport::as_bytes(request));
    ASSERT_TRUE(wait_for([&] { return ended_.size() == id - 9; }));
    EXPECT_EQ(ended_.back(), std::pair(id, Code::cancelled));
    ++id;
  }
  // The next function is not cancelled.
  send({{id, kSucceed()}}, 2);
  ASSERT_TRUE(wait_for([&] { return ended_.size() == 3; }));
  EXPECT_EQ(ended_.back(), std::pair(id, Code::ok));
}

// The coordinator's clock decides, since the worker's may be behind.
TEST_F(LateWorkerTest, DoesNotStartAFunctionThatHasExpiredForTheCoordinator) {
  send_hello();
  start();
  constexpr std::uint64_t kAlone = protocol::kForOneWorker;
  waiting_on_worker = 0;
  send({{1, kAwaitCancellation()}, {kAlone, kSucceed()}, {kAlone + 1, kSucceed()}}, 0);
  ASSERT_TRUE(wait_for([] { return waiting_on_worker == 1; }));
  worker_->send(transport::kGiveBack, transport::as_bytes(protocol::GiveBackHeader{0, 0, kAlone}));
  ASSERT_TRUE(wait_for([this] { return given_back_.size() == 1; }));
  worker_->send(transport::kGiveBack, transport::as_bytes(protocol::GiveBackHeader{0, 0, 1}));
  ASSERT_TRUE(wait_for([this] { return ended_.size() == 3; }));
  EXPECT_EQ(ended_, (Ended{{1, Code::cancelled}, {kAlone, Code::deadline_exceeded}, {kAlone + 1, Code::ok}}));
}

TEST_F(LateWorkerTest, KeepsClosuresForThisWorkerWhenOneOfThemFails) {
  send_hello();
  constexpr std::uint64_t kAlone = protocol::kForOneWorker;
  send({{kAlone, kFail()}, {1, kSucceed()}}, 0);
  start();
  ASSERT_TRUE(wait_for([this] { return ended_.size() == 2; }));
  EXPECT_EQ(ended_, (Ended{{kAlone, Code::invalid_argument}, {1, Code::ok}}));
  EXPECT_TRUE(given_back_.empty());
}

}  // namespace
}  // namespace capstan::coordinator

// worker_server_test.cpp -- messages that reach a worker at unusual moments.
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

/// A coordinator that does what the test says, and a worker that comes in late.
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
  /// What was sent before is what the worker finds when it first looks.
  void start() {
    thread_ = std::jthread([runtime = std::move(runtime_)] { WorkerServer(runtime).run(); });
  }
  struct Run {
    std::uint64_t id;
    std::uint32_t function;
  };
  /// As a coordinator that was never started again does.
  void take_in() { worker_->send(transport::kHello, transport::as_bytes(std::int32_t{0})); }
  /// A coordinator that knows of that many failures sends functions without arguments.
  void send(const std::vector<Run>& runs, std::uint64_t failures) {
    std::vector<std::byte> batch;
    for (const Run& run : runs) {
      const protocol::RunHeader header{
          .id = run.id,
          .function = run.function,
          .stays = static_cast<std::uint8_t>(run.id < protocol::kForOneWorker ? 0 : 1)};
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

// It used to answer before it had connected to the coordinator, and died of that.
TEST_F(LateWorkerTest, MayBeAskedForClosuresTogetherWithTheGreeting) {
  take_in();
  worker_->send(transport::kGiveBack, transport::as_bytes(protocol::GiveBackHeader{2}));
  start();
  EXPECT_TRUE(wait_for([this] { return greeted_ && !given_back_.empty(); }));
  EXPECT_EQ(given_back_, std::vector<std::vector<std::uint64_t>>(1)) << "it has none";
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

TEST_F(LateWorkerTest, GivesBackWhatItHasNotBegunWhenAFunctionFails) {
  take_in();
  constexpr std::uint64_t kAlone = protocol::kForOneWorker;
  send({{1, kSucceed()}, {2, kFail()}, {3, kSucceed()}, {kAlone, kSucceed()}, {4, kSucceed()}}, 0);
  start();
  ASSERT_TRUE(wait_for([this] { return ended_.size() == 3 && !given_back_.empty(); }));
  EXPECT_EQ(ended_, (Ended{{1, Code::ok}, {2, Code::invalid_argument}, {kAlone, Code::ok}}));
  EXPECT_EQ(given_back_, (Given{{4, 3}}));
  // Sent before the coordinator knew of the failure, and after.
  send({{5, kSucceed()}, {kAlone + 1, kSucceed()}, {6, kSucceed()}}, 0);
  ASSERT_TRUE(wait_for([this] { return ended_.size() == 4 && given_back_.size() == 2; }));
  EXPECT_EQ(ended_.back(), std::pair(kAlone + 1, Code::ok));
  EXPECT_EQ(given_back_.back(), (std::vector<std::uint64_t>{6, 5}));
  send({{7, kSucceed()}}, 1);
  ASSERT_TRUE(wait_for([this] { return ended_.size() == 5; }));
  EXPECT_EQ(ended_.back(), std::pair(std::uint64_t{7}, Code::ok));
}

// Of the error of another worker, and of the deadline of one function.
TEST_F(LateWorkerTest, CancelsTheFunctionThatItRunsIfAskedForItsNumber) {
  take_in();
  start();
  std::uint64_t id = 10;
  for (const protocol::GiveBackHeader& request :
       {protocol::GiveBackHeader{0, 11, 0}, protocol::GiveBackHeader{0, 0, 11}}) {
    waiting_on_worker = 0;
    send({{id, kAwaitCancellation()}}, id - 10);
    ASSERT_TRUE(wait_for([] { return waiting_on_worker == 1; }));
    const std::size_t given = given_back_.size();
    worker_->send(transport::kGiveBack,
                  transport::as_bytes(protocol::GiveBackHeader{5, id, id - 1}));  // others
    ASSERT_TRUE(wait_for([&] { return given_back_.size() == given + 1; }));
    EXPECT_EQ(ended_.size(), id - 10);
    worker_->send(transport::kGiveBack, transport::as_bytes(request));
    ASSERT_TRUE(wait_for([&] { return ended_.size() == id - 9; }));
    EXPECT_EQ(ended_.back(), std::pair(id, Code::cancelled));
    ++id;
  }
  // The next one is not.
  send({{id, kSucceed()}}, 2);
  ASSERT_TRUE(wait_for([&] { return ended_.size() == 3; }));
  EXPECT_EQ(ended_.back(), std::pair(id, Code::ok));
}

// The coordinator's clock decides: this worker's may be late.
TEST_F(LateWorkerTest, DoesNotBeginAFunctionWhoseDeadlineHasPassedForTheCoordinator) {
  take_in();
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

TEST_F(LateWorkerTest, KeepsWhatIsForItAloneWhenAFunctionForItAloneFails) {
  take_in();
  constexpr std::uint64_t kAlone = protocol::kForOneWorker;
  send({{kAlone, kFail()}, {1, kSucceed()}}, 0);
  start();
  ASSERT_TRUE(wait_for([this] { return ended_.size() == 2; }));
  EXPECT_EQ(ended_, (Ended{{kAlone, Code::invalid_argument}, {1, Code::ok}}));
  EXPECT_TRUE(given_back_.empty());
}

}  // namespace
}  // namespace capstan::coordinator

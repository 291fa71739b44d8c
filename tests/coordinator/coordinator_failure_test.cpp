// coordinator_failure_test.cpp -- workers and ps, as threads, that end while functions run.
// Tests: src/coordinator/worker/server.cpp
// Tests: src/coordinator/recovery/failure_handling.cpp
// Tests: src/coordinator/recovery/last_worker.cpp
// Tests: src/coordinator/recovery/ps_recovery.cpp
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "capstan/coordinator.hpp"
#include "capstan/per_worker.hpp"
#include "ps/server/ps_server.hpp"
#include "strategy/context.hpp"
#include "support/end_worker.hpp"
#include "support/names_all.hpp"
#include "support/poll.hpp"
#include "support/rank_threads.hpp"
#include "transport/message_types.hpp"

namespace capstan {
namespace {

using testing::HasSubstr;

std::atomic<int> to_end{0};
std::atomic<bool> barrier{false};

/// Ends a rank as the end of a job does, so its fabrics close while other ranks use them.
void end_rank(const cluster::Member& member) {
  auto& fabric = strategy::Context::current().client().runtime().data();
  fabric.connect(member.rank, member.name(), member.control_address).send(transport::kShutdown, {});
  fabric.progress();
}

/// Ends its worker if `to_end` workers remain to be ended; the function then runs on another worker.
std::int64_t work_or_end(const Counter& counter) {
  if (to_end.fetch_sub(1) > 0) ending::end_this_worker();
  return counter.fetch_add(1);
}
void end_ps(int index) {
  auto& runtime = strategy::Context::current().client().runtime();
  end_rank(runtime.member(Role::ps, index));
}
void wait_at_the_barrier() {
  poll_until([] { return barrier.load(); });
}
int one() { return 1; }

class CoordinatorFailureTest : public testing::Test {
 protected:
  void SetUp() override { barrier = false; }
  void TearDown() override {
    barrier = true;
    coordinator_.reset();
    strategy_.reset();
  }
  template <class Call>
  static void expect_unavailable(const std::string& text, const Call& call) {
    try {
      call();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unavailable);
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  }

  RankThreads ranks_{{.ranks = 6, .flags = {{"ps", "2"}}, .worker = ending::worker}};
  std::unique_ptr<ParameterServerStrategy> strategy_ =
      std::make_unique<ParameterServerStrategy>(ranks_.cluster());
  std::unique_ptr<ClusterCoordinator> coordinator_ = std::make_unique<ClusterCoordinator>(*strategy_);
};

// A5.13, B68-B69, B74: better: the other workers do not wait for a dead one.
TEST_F(CoordinatorFailureTest, FunctionsOfADeadWorkerRunElsewhere) {
  const auto scope = strategy_->scope();
  const Counter counter("runs");
  to_end = 1;
  std::vector<RemoteValue<std::int64_t>> values;
  for (int i = 0; i < 60; ++i) values.push_back(coordinator_->schedule<&work_or_end>(counter));
  coordinator_->join();
  for (const auto& value : values) EXPECT_GE(value.fetch(), 0);
  EXPECT_GE(counter.value(), 61) << "one function ran twice";
  EXPECT_EQ(coordinator_->workers(), 2);
  // The remaining workers continue.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(coordinator_->schedule<&one>().fetch(), 1);
}

void add_one(PerWorkerVariable<std::int64_t> v) { v.assign_add(std::vector<std::int64_t>{1}); }

TEST_F(CoordinatorFailureTest, SkipsTheCopyOfADeadWorker) {
  using Copy = Array<std::int64_t>;
  const auto scope = strategy_->scope();
  const PerWorkerVariable<std::int64_t> v("v", Copy::vector({10}));
  for (int worker = 0; worker < 3; ++worker) {
    for (int i = 0; i <= worker; ++i) coordinator_->schedule_on<&add_one>(worker, v).fetch();
  }
  EXPECT_EQ(v.read_all(*coordinator_),
            (std::vector<Copy>{Copy::vector({11}), Copy::vector({12}), Copy::vector({13})}));
  coordinator_->schedule_on<&ending::end_this_worker>(1);
  // The worker may die before, during or after this call.
  EXPECT_LE(v.read_all(*coordinator_).size(), 3U);
  ASSERT_TRUE(poll_until([&] { return coordinator_->workers() < 3; }));
  EXPECT_EQ(coordinator_->worker_indices(), (std::vector<int>{0, 2}));
  EXPECT_EQ(v.read_all(*coordinator_), (std::vector<Copy>{Copy::vector({11}), Copy::vector({13})}));
  try {
    coordinator_->schedule_on<&one>(1).fetch();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::aborted);
    EXPECT_THAT(error.what(), NamesAll({"worker 1"}));
  }
  EXPECT_NO_THROW(coordinator_->join());
}

// A5.13: better: when no worker is left, every call fails at once.
TEST_F(CoordinatorFailureTest, EveryCallFailsWithoutAWorker) {
  const auto scope = strategy_->scope();
  const Counter counter("runs");
  to_end = 1000;
  const auto schedule_and_join = [&] {
    for (int i = 0; i < 10; ++i) coordinator_->schedule<&work_or_end>(counter);
    coordinator_->join();
  };
  expect_unavailable("has ended, and no worker is left", schedule_and_join);
  expect_unavailable("no worker is left", [&] { coordinator_->join(); });
  expect_unavailable("no worker is left", [&] { (void)coordinator_->done(); });
  EXPECT_EQ(coordinator_->workers(), 0);
}

// A5.15, B57-B59, B70, B75-B77: same.
TEST_F(CoordinatorFailureTest, EveryCallNamesADeadPs) {
  const std::string name = ranks_.runtime().member(Role::ps, 1).name() + " is dead, and its shards are lost";
  const auto blocked = coordinator_->schedule<&wait_at_the_barrier>();
  coordinator_->schedule<&end_ps>(1);
  expect_unavailable(name, [&] { coordinator_->join(); });
  expect_unavailable(name, [&] { coordinator_->schedule<&one>(); });
  expect_unavailable(name, [&] { (void)coordinator_->done(); });
  expect_unavailable(name, [&] { (void)coordinator_->join(std::chrono::milliseconds(1)); });
  expect_unavailable(name, [&] { blocked.fetch(); });
}

std::atomic<bool> is_fenced{false};

/// Worker 0 sends one heartbeat and accepts closures; then it acts as if it were stopped, until it
/// is fenced.
int worker_that_falls_silent(const std::shared_ptr<cluster::Runtime>& runtime) {
  if (runtime->self().index != 0) return Server(Cluster(runtime)).join();
  transport::Fabric& control = runtime->control();
  const auto ignore = [](const transport::Message&) {};
  bool over = false;
  for (const auto type :
       {transport::kHello, transport::kHeartbeat, transport::kRunClosures, transport::kGiveBack})
    control.on_message(type, ignore);
  control.on_message(transport::kFenced, [](const transport::Message&) { is_fenced = true; });
  control.on_message(transport::kShutdown, [&](const transport::Message&) { over = true; });
  auto& coordinator = runtime->control_peer(runtime->member(Role::coordinator, 0));
  coordinator.send(transport::kHello, {});
  coordinator.send(transport::kHeartbeat, {});
  transport::progress_until(control, transport::deadline_in(std::chrono::seconds(20)),
                            [&] { return over || is_fenced; });
  control.remove_handlers();
  return 0;
}

/// A ps that never acknowledges the pushes of a dead worker.
int ps_that_does_not_close(const std::shared_ptr<cluster::Runtime>& runtime) {
  ps::PsServer server(runtime);
  runtime->control().on_message(transport::kWorkerDead, [](const transport::Message&) {});
  server.run();
  return 0;
}

RankThreadsOptions silent_worker() {
  is_fenced = false;
  RankThreadsOptions options{.ranks = 4, .flags = {{"ps", "1"}, {"heartbeat-timeout", "1s"}}};
  options.worker = worker_that_falls_silent;
  return options;
}

TEST(SilentWorkerTest, IsDeclaredDeadAndItsFunctionsRunElsewhere) {
  const RankThreads ranks(silent_worker());
  ParameterServerStrategy strategy(ranks.cluster());
  ClusterCoordinator coordinator(strategy);
  std::vector<RemoteValue<int>> values;
  for (int i = 0; i < 10; ++i) values.push_back(coordinator.schedule<&one>());
  coordinator.join();
  for (const auto& value : values) EXPECT_EQ(value.fetch(), 1);
  EXPECT_EQ(coordinator.workers(), 1);
  EXPECT_TRUE(poll_until([] { return is_fenced.load(); }));
}

TEST(SilentWorkerTest, NamesAPsThatDoesNotCloseIt) {
  auto options = silent_worker();
  options.ps = ps_that_does_not_close;
  options.flags.emplace_back("wait-timeout", "3s");
  const RankThreads ranks(options);
  ParameterServerStrategy strategy(ranks.cluster());
  ClusterCoordinator coordinator(strategy);
  for (int i = 0; i < 10; ++i) coordinator.schedule<&one>();
  const auto& runtime = ranks.runtime();
  try {
    coordinator.join();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
    EXPECT_THAT(error.what(), NamesAll({"3000 ms", runtime.member(Role::ps, 0).name(),
                                        runtime.member(Role::worker, 0).name()}));
  }
}

}  // namespace
}  // namespace capstan

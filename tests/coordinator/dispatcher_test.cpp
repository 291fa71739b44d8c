// dispatcher_test.cpp -- assigns closures to workers, and reassigns those of dead workers.
#include "coordinator/scheduling/dispatcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capstan/serialize.hpp"
#include "capstan/variable.hpp"
#include "support/members.hpp"
#include "support/poll.hpp"
#include "transport/bytes.hpp"
#include "transport/loop/loop.hpp"
#include "transport/message_types.hpp"

namespace capstan::coordinator {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint32_t kFunction = 3;

/// In these tests, no call may wait.
class NoWaiter final : public Waiter {
 public:
  bool wait(const std::function<bool()>& done, std::optional<Deadline>) override {
    EXPECT_TRUE(done()) << "the call would wait";
    return true;
  }
  void nudge() override { ++nudges; }

  int nudges = 0;
};

/// Records its messages, and replies when the test requests it.
class RecordingWorker {
 public:
  RecordingWorker(transport::LoopHub& hub, int rank, const transport::Fabric& coordinator)
      : fabric_(hub.open()) {
    fabric_->set_rank(rank);
    coordinator_ = &fabric_->connect(0, "the coordinator", coordinator.address());
    fabric_->on_message(transport::kRunClosures, [this](const transport::Message& message) {
      batches.push_back(transport::read_header<protocol::BatchHeader>(message).value());
      Reader in(message.payload);
      for (std::uint64_t i = 0; i < batches.back().closures; ++i) {
        received.push_back(read<protocol::RunHeader>(in));
        (void)in.view(received.back().argument_bytes);
      }
    });
    fabric_->on_message(transport::kGiveBack, [this](const transport::Message& message) {
      revocations.push_back(transport::read_header<protocol::GiveBackHeader>(message).value());
    });
  }

  const transport::Fabric& fabric() const { return *fabric_; }
  int rank() const { return fabric_->rank(); }
  void progress() { fabric_->progress(); }
  void report(const protocol::RunHeader& closure, std::chrono::nanoseconds time, Code code = Code::ok) {
    const protocol::DoneHeader done{closure.id, 0, static_cast<std::uint64_t>(time.count()),
                                    static_cast<std::uint64_t>(code)};
    coordinator_->send(transport::kClosuresDone, {}, transport::as_bytes(done));
  }
  void give_back(const std::vector<std::uint64_t>& ids) {
    coordinator_->send(transport::kGivenBack, {}, to_bytes(ids));
  }

  std::vector<protocol::BatchHeader> batches;
  std::vector<protocol::RunHeader> received;
  std::vector<protocol::GiveBackHeader> revocations;

 private:
  std::unique_ptr<transport::Fabric> fabric_;
  transport::Peer* coordinator_ = nullptr;
};

class DispatcherTest : public testing::Test {
 protected:
  DispatcherTest() {
    here_->set_rank(0);
    here_->on_message(transport::kClosuresDone,
                      [this](const transport::Message& message) { dispatcher_.take_results(message); });
    here_->on_message(transport::kGivenBack,
                      [this](const transport::Message& message) { dispatcher_.take_back(message); });
    dispatcher_.reserve(8);
  }

  static Cluster small_cluster() {
    Settings settings;
    settings.set_from_flag("heap-slab-bytes", "1MiB");
    return Cluster(cluster::Runtime::embedded_cluster(settings));
  }
  static cluster::Table table() {
    cluster::Table table = table_of(0, 8);
    table.restarts = 1;
    table.late = 1;
    return table;
  }
  transport::Peer& connect_worker(int rank) {
    auto& worker = workers_.emplace_back(std::make_unique<RecordingWorker>(hub_, rank, *here_));
    return *peers_.emplace_back(
        &here_->connect(worker->rank(), "a worker of the test", worker->fabric().address()));
  }
  void add_workers(int count) {
    for (int i = 0; i < count; ++i) dispatcher_.add(connect_worker(next_rank_++));
  }
  transport::Peer& connect_joining(int index) {
    const cluster::Member member = joining_worker(members_.table(), index);
    members_.add(member, cluster::MemberState::joining);
    return connect_worker(member.rank);
  }
  void replace(int index, transport::Peer& worker) {
    dispatcher_.replace(index, worker);
    members_.set(worker.rank(), cluster::MemberState::alive);
  }
  std::size_t lose(std::size_t number, std::set<int> ps = {}, Dispatcher::Clock::time_point deadline = {}) {
    members_.set(peer(number).rank(), cluster::MemberState::dead);
    return dispatcher_.take_from(peer(number), std::move(ps), deadline);
  }
  RecordingWorker& worker(std::size_t number) { return *workers_.at(number); }
  transport::Peer& peer(std::size_t number) { return *peers_.at(number); }

  std::shared_ptr<Result> put(int count = 1) {
    std::shared_ptr<Result> last;
    for (int i = 0; i < count; ++i) last = queue_.put(kFunction, {});
    return last;
  }
  void dispatch() {
    dispatcher_.dispatch();
    for (const auto& worker : workers_) worker->progress();
  }
  void receive_and_dispatch() {
    here_->progress();
    dispatch();
  }
  /// Runs one closure, so that the dispatcher knows its duration.
  void learn_time(std::chrono::nanoseconds time) {
    put();
    dispatch();
    worker(0).report(worker(0).received.at(0), time);
    here_->progress();
    worker(0).received.clear();
    worker(0).batches.clear();
  }
  std::size_t received_by_all() const {
    std::size_t count = 0;
    for (const auto& worker : workers_) count += worker->received.size();
    return count;
  }

  ParameterServerStrategy strategy_{small_cluster()};
  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> here_ = hub_.open();
  int next_rank_ = 1;
  std::vector<std::unique_ptr<RecordingWorker>> workers_;
  std::vector<transport::Peer*> peers_;
  cluster::Membership members_{table()};
  std::shared_ptr<NoWaiter> waiter_ = std::make_shared<NoWaiter>();
  ClosureQueue queue_{0, waiter_, members_};
  Dispatcher dispatcher_{strategy_.implementation(), members_, queue_, 0};
};

TEST_F(DispatcherTest, GivesAWorkerTwoClosuresWhoseTimeIsUnknown) {
  add_workers(1);
  put(5);
  dispatch();
  ASSERT_THAT(worker(0).received, SizeIs(2));
  EXPECT_EQ(worker(0).received[0].function, kFunction);
  EXPECT_LT(worker(0).received[0].id, worker(0).received[1].id);
}

TEST_F(DispatcherTest, GivesTheNextClosureWhenOneEnds) {
  add_workers(1);
  const auto first = queue_.put(kFunction, {});
  put(4);
  dispatch();
  worker(0).report(worker(0).received[0], milliseconds(5));
  receive_and_dispatch();
  EXPECT_FALSE(first->pending());
  EXPECT_THAT(worker(0).received, SizeIs(3));
  EXPECT_EQ(dispatcher_.ended(peer(0)), 1U);
}

TEST_F(DispatcherTest, CollectsShortClosuresWhileEveryWorkerHasTwo) {
  add_workers(1);
  learn_time(std::chrono::microseconds(2));
  add_workers(1);
  put();
  dispatch();
  EXPECT_EQ(received_by_all(), 1U);
  int nudges = waiter_->nudges;
  for (int i = 0; i < 3; ++i) {  // workers have 1 and 0, 1 and 1, 2 and 1 closures
    put();
    EXPECT_EQ(waiter_->nudges, ++nudges) << i;
    dispatch();
  }
  put(10);
  EXPECT_EQ(waiter_->nudges, nudges) << "both workers have two";
  EXPECT_EQ(received_by_all(), 4U);
  worker(0).report(worker(0).received[0], std::chrono::microseconds(2));
  receive_and_dispatch();
  EXPECT_EQ(received_by_all(), 14U) << "an answer sends the closures that were collected";
  for (const protocol::RunHeader& closure : worker(0).received)
    worker(0).report(closure, std::chrono::microseconds(2));
  receive_and_dispatch();
  put();
  EXPECT_EQ(waiter_->nudges, nudges + 1) << "a worker is idle";
}

TEST_F(DispatcherTest, FillsAWorkerWithShortClosuresInOneBatch) {
  add_workers(1);
  learn_time(std::chrono::microseconds(2));
  put(1000);
  dispatch();
  EXPECT_GE(worker(0).received.size(), 100U);
  EXPECT_LE(worker(0).received.size(), 512U);
  EXPECT_THAT(worker(0).batches, SizeIs(1));
}

TEST_F(DispatcherTest, GivesAWorkerTwoLongClosures) {
  add_workers(1);
  learn_time(milliseconds(50));
  put(1000);
  dispatch();
  EXPECT_THAT(worker(0).received, SizeIs(2));
}

TEST_F(DispatcherTest, GivesAWorkerNoMoreThanTheLimit) {
  Dispatcher limited(strategy_.implementation(), members_, queue_, 1);
  limited.add(connect_worker(next_rank_++));
  put(3);
  limited.dispatch();
  worker(0).progress();
  EXPECT_THAT(worker(0).received, SizeIs(1));
}

TEST_F(DispatcherTest, SpreadsClosuresOverAllWorkers) {
  add_workers(3);
  put(3);
  dispatch();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(worker(i).received, SizeIs(1)) << i;
}

TEST_F(DispatcherTest, GivesAClosureForOneWorkerToThatWorkerFirst) {
  add_workers(2);
  put(4);
  const auto for_one = queue_.put_for(1, kFunction + 1, {});
  dispatch();
  ASSERT_FALSE(worker(1).received.empty());
  EXPECT_EQ(worker(1).received[0].function, kFunction + 1);
  EXPECT_EQ(worker(1).received[0].pinned, 1);
  for (const auto& closure : worker(0).received) EXPECT_EQ(closure.pinned, 0);
  worker(1).report(worker(1).received[0], milliseconds(1));
  here_->progress();
  EXPECT_FALSE(for_one->pending());
}

TEST_F(DispatcherTest, DispatchesNothingFromAnEmptyQueue) {
  add_workers(1);
  EXPECT_FALSE(dispatcher_.dispatch());
  put();
  EXPECT_TRUE(dispatcher_.dispatch());
  EXPECT_FALSE(dispatcher_.dispatch());
}

TEST_F(DispatcherTest, RequeuesTheClosuresOfADeadWorkerOnceEveryPsHasClosedIt) {
  add_workers(1);
  const auto result = put(2);
  dispatch();
  const std::vector<protocol::RunHeader> before = worker(0).received;
  EXPECT_EQ(lose(0, {5, 6}, Dispatcher::Clock::now() + hours(1)), 2U);
  add_workers(1);
  dispatch();
  EXPECT_THAT(worker(1).received, IsEmpty());
  dispatcher_.note_applied(worker(0).rank(), 5);
  EXPECT_TRUE(dispatcher_.has_unapplied());
  dispatch();
  EXPECT_THAT(worker(1).received, IsEmpty());
  dispatcher_.note_applied(worker(0).rank(), 6);
  EXPECT_FALSE(dispatcher_.has_unapplied());
  dispatch();
  ASSERT_THAT(worker(1).received, SizeIs(2));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(worker(1).received[i].id, before[i].id);
    EXPECT_EQ(worker(1).received[i].again, 1) << "the closure may have started";
  }
  EXPECT_TRUE(result->pending());
}

TEST_F(DispatcherTest, RequeuesClosuresBeforeThoseThatHaveNotStarted) {
  add_workers(1);
  put(4);
  dispatch();
  const std::uint64_t first = worker(0).received[0].id;
  (void)lose(0);
  add_workers(1);
  dispatch();
  ASSERT_THAT(worker(1).received, SizeIs(2));
  EXPECT_EQ(worker(1).received[0].id, first);
}

TEST_F(DispatcherTest, FailsClosuresForOneDeadWorker) {
  add_workers(2);
  const auto for_one = queue_.put_for(0, kFunction, {});
  dispatch();
  EXPECT_EQ(lose(0, {5}, Dispatcher::Clock::now() + hours(1)), 0U);
  EXPECT_FALSE(for_one->pending());
  EXPECT_EQ(for_one->code, Code::aborted);
}

TEST_F(DispatcherTest, IgnoresMessagesOfARankThatIsNotAWorker) {
  add_workers(1);
  put();
  dispatch();
  transport::Peer& stranger = here_->connect(99, "no worker", worker(0).fabric().address());
  EXPECT_EQ(dispatcher_.take_from(stranger, {5}, {}), 0U);
  EXPECT_FALSE(dispatcher_.has_unapplied());
}

TEST_F(DispatcherTest, IgnoresTheResultsOfADeadWorker) {
  add_workers(1);
  const auto result = put();
  dispatch();
  (void)lose(0, {5}, Dispatcher::Clock::now() + hours(1));
  worker(0).report(worker(0).received[0], milliseconds(1));
  here_->progress();
  EXPECT_TRUE(result->pending());
  EXPECT_EQ(dispatcher_.ended(peer(0)), 0U);
}

TEST_F(DispatcherTest, ReportsAPsThatHasNotClosedADeadWorkerByTheDeadline) {
  add_workers(1);
  EXPECT_FALSE(dispatcher_.overdue());
  (void)lose(0, {5, 6}, Dispatcher::Clock::now());
  dispatcher_.note_applied(worker(0).rank(), 5);
  const auto overdue = dispatcher_.overdue();
  ASSERT_TRUE(overdue);
  EXPECT_EQ(overdue->worker, worker(0).rank());
  EXPECT_EQ(overdue->ps, 6);
}

TEST_F(DispatcherTest, ReportsNoPsBeforeTheDeadline) {
  add_workers(1);
  (void)lose(0, {5}, Dispatcher::Clock::now() + hours(1));
  EXPECT_FALSE(dispatcher_.overdue());
}

TEST_F(DispatcherTest, GivesClosuresToAWorkerThatWasRestarted) {
  add_workers(1);
  (void)lose(0);
  put();
  dispatch();
  EXPECT_EQ(received_by_all(), 0U);
  replace(0, connect_joining(0));
  dispatch();
  EXPECT_THAT(worker(0).received, IsEmpty());
  EXPECT_THAT(worker(1).received, SizeIs(1));
  EXPECT_EQ(dispatcher_.workers(), 1);
  EXPECT_EQ(dispatcher_.worker(0), &peer(1));
  EXPECT_EQ(dispatcher_.worker(1), nullptr);
}

TEST_F(DispatcherTest, GivesNothingToAnExpectedWorkerUntilItJoins) {
  dispatcher_.add(connect_joining(-1));
  EXPECT_EQ(dispatcher_.workers(), 1);
  put();
  dispatch();
  EXPECT_EQ(received_by_all(), 0U);
  replace(0, peer(0));
  dispatch();
  EXPECT_THAT(worker(0).received, SizeIs(1));
}

TEST_F(DispatcherTest, RevokesAllUnstartedClosuresOfALeavingWorker) {
  add_workers(1);
  put(2);
  dispatch();
  EXPECT_EQ(dispatcher_.drained_worker(), nullptr);
  dispatcher_.leave(worker(0).rank());
  worker(0).progress();
  ASSERT_THAT(worker(0).revocations, SizeIs(1));
  EXPECT_EQ(worker(0).revocations[0].max_count, 2U);
  EXPECT_EQ(dispatcher_.drained_worker(), nullptr) << "it holds closures";
  worker(0).give_back({worker(0).received[1].id});
  worker(0).report(worker(0).received[0], milliseconds(1));
  add_workers(1);
  receive_and_dispatch();
  EXPECT_EQ(dispatcher_.drained_worker(), &peer(0));
  EXPECT_THAT(worker(0).received, SizeIs(2)) << "it gets no more closures";
  EXPECT_THAT(worker(1).received, SizeIs(1));
}

TEST_F(DispatcherTest, MovesClosuresFromABusyWorkerToAnIdleOne) {
  add_workers(1);
  put(2);
  dispatch();
  add_workers(1);
  ASSERT_TRUE(poll_until([this] {
    dispatch();
    return !worker(0).revocations.empty();
  }));
  EXPECT_EQ(worker(0).revocations[0].max_count, 1U) << "half of its closures";
  dispatch();
  EXPECT_THAT(worker(0).revocations, SizeIs(1)) << "one request";
  worker(0).give_back({worker(0).received[1].id});
  receive_and_dispatch();
  ASSERT_THAT(worker(1).received, SizeIs(1));
  EXPECT_EQ(worker(1).received[0].id, worker(0).received[1].id);
  EXPECT_EQ(worker(1).received[0].again, 0) << "the closure has not started";
}

TEST_F(DispatcherTest, GivesClosuresToAWorkerThatHasGivenSomeBack) {
  add_workers(1);
  put(2);
  dispatch();
  worker(0).give_back({worker(0).received.at(1).id});
  receive_and_dispatch();
  ASSERT_THAT(worker(0).received, SizeIs(3));
  EXPECT_EQ(worker(0).received[2].id, worker(0).received[1].id);
}

TEST_F(DispatcherTest, RevokesClosuresThatWereScheduledBeforeAnError) {
  add_workers(1);
  put(2);
  dispatch();
  worker(0).report(worker(0).received[0], milliseconds(1), Code::internal);
  receive_and_dispatch();
  ASSERT_THAT(worker(0).revocations, SizeIs(1));
  EXPECT_GT(worker(0).revocations[0].cancelled_below, worker(0).received[1].id);
  dispatch();
  EXPECT_THAT(worker(0).revocations, SizeIs(1)) << "one request";
}

TEST_F(DispatcherTest, SendsAWorkerTheNumberOfItsKnownFailures) {
  add_workers(1);
  put();
  dispatch();
  EXPECT_EQ(worker(0).batches.at(0).failures, 0U);
  worker(0).report(worker(0).received[0], milliseconds(1), Code::internal);
  here_->progress();
  EXPECT_THROW(queue_.join(std::nullopt), Error);
  put();
  dispatch();
  ASSERT_THAT(worker(0).batches, SizeIs(2));
  EXPECT_EQ(worker(0).batches[1].failures, 1U);
}

TEST_F(DispatcherTest, CancelsAClosureThatRunsPastItsDeadlineOnce) {
  add_workers(1);
  const auto deadline = ClosureExtras::Clock::now() + hours(1);
  (void)queue_.put(kFunction, {}, std::make_unique<ClosureExtras>(ClosureExtras{.deadline = deadline}));
  dispatch();
  ASSERT_THAT(worker(0).received, SizeIs(1));
  EXPECT_EQ(worker(0).received[0].timed, 1);
  dispatcher_.cancel_expired();
  worker(0).progress();
  EXPECT_THAT(worker(0).revocations, IsEmpty());
  EXPECT_EQ(dispatcher_.overrun().peer, nullptr);
  ASSERT_TRUE(queue_.expire(deadline));
  for (int i = 0; i < 2; ++i) dispatcher_.cancel_expired();
  worker(0).progress();
  ASSERT_THAT(worker(0).revocations, SizeIs(1));
  EXPECT_EQ(worker(0).revocations[0].expired_id, worker(0).received[0].id);
  const Dispatcher::Overrun overrun = dispatcher_.overrun();
  EXPECT_EQ(overrun.peer, &peer(0));
  EXPECT_EQ(overrun.function, kFunction);
  EXPECT_EQ(overrun.deadline, deadline);
}

TEST_F(DispatcherTest, StartsWorkersSuccessively) {
  dispatcher_.delay_start(hours(1), milliseconds(0));
  add_workers(2);
  put(4);
  dispatch();
  EXPECT_THAT(worker(0).received, SizeIs(2));
  EXPECT_THAT(worker(1).received, IsEmpty());
}

TEST_F(DispatcherTest, StartsEveryWorkerWithinTheLongestDelay) {
  dispatcher_.delay_start(hours(1), milliseconds(5));
  add_workers(3);
  put(6);
  EXPECT_TRUE(poll_until([this] {
    dispatch();
    return !worker(1).received.empty() && !worker(2).received.empty();
  }));
}

TEST_F(DispatcherTest, AnnouncesAVariableToEachWorkerOnce) {
  add_workers(1);
  const auto scope = strategy_.scope();
  const Variable<float> variable("w", Shape{2}, initializers::zeros());
  put();
  dispatch();
  EXPECT_GT(worker(0).batches.at(0).announcement_bytes, 0U);
  put();
  dispatch();
  EXPECT_EQ(worker(0).batches.at(1).announcement_bytes, 0U);
  (void)lose(0);
  replace(0, connect_joining(0));
  dispatch();
  EXPECT_GT(worker(1).batches.at(0).announcement_bytes, 0U) << "a restarted worker knows no variables";
}

/// Workers answer, die, return, leave and give closures back in a random order.
class RandomDispatcherTest : public DispatcherTest, public testing::WithParamInterface<unsigned> {
 protected:
  /// Takes what the workers have received, and gives closures back if the dispatcher has requested them.
  void receive() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      outstanding_.resize(workers_.size());
      for (const protocol::RunHeader& closure : std::exchange(worker(i).received, {}))
        outstanding_[i].push_back(closure);
      for (const protocol::GiveBackHeader& request : std::exchange(worker(i).revocations, {})) {
        std::vector<std::uint64_t> ids;
        while (outstanding_[i].size() > 1 && ids.size() < request.max_count) {
          ids.push_back(outstanding_[i].back().id);
          outstanding_[i].pop_back();
        }
        worker(i).give_back(ids);
      }
    }
  }
  bool alive(std::size_t i) { return members_.is_alive(peer(i).rank()); }
  void answer(std::size_t i) {
    if (!alive(i) || outstanding_[i].empty()) return;
    const bool is_short = random_() % 2 == 0;
    worker(i).report(outstanding_[i].front(), is_short ? std::chrono::microseconds(1) : milliseconds(5));
    outstanding_[i].pop_front();
  }
  void step() {
    const std::size_t i = random_() % workers_.size();
    const auto choice = random_() % 100;
    if (choice < 40) {
      put(static_cast<int>(random_() % 8 == 0 ? 30 : random_() % 4));
    } else if (choice < 96) {
      answer(i);
    } else if (choice < 98 && i < kWorkers && alive(i) && losses_++ < 2) {
      (void)lose(i);
      if (random_() % 2 == 0) replace(static_cast<int>(i), connect_joining(static_cast<int>(i)));
    } else if (alive(i) && !leaves_) {
      leaves_ = i;
      dispatcher_.leave(peer(i).rank());
    }
    receive_and_dispatch();
    receive();
  }

  static constexpr std::size_t kWorkers = 5;
  std::mt19937 random_{GetParam()};
  std::vector<std::deque<protocol::RunHeader>> outstanding_;
  int losses_ = 0;
  std::optional<std::size_t> leaves_;
};

TEST_P(RandomDispatcherTest, NoLiveWorkerIsIdleWhileClosuresWait) {
  add_workers(kWorkers);
  receive();
  for (int i = 0; i < 400; ++i) {
    step();
    for (std::size_t w = 0; w < workers_.size() && !queue_.empty(); ++w) {
      if (alive(w) && leaves_ != w) {
        EXPECT_GE(outstanding_[w].size(), 2U) << "worker " << w << ", step " << i;
      }
    }
  }
  for (int i = 0; i < 10'000 && !queue_.done(); ++i) {
    for (std::size_t w = 0; w < workers_.size(); ++w) answer(w);
    receive_and_dispatch();
    receive();
  }
  EXPECT_TRUE(queue_.done()) << "closures are lost";
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomDispatcherTest, testing::Range(0U, 20U));

TEST_F(DispatcherTest, ReportsClosuresHeldByWorkers) {
  add_workers(2);
  (void)queue_.put_for(1, kFunction, {});
  dispatch();
  const auto busy = dispatcher_.busy_workers();
  ASSERT_THAT(busy, SizeIs(1));
  EXPECT_EQ(busy[0].worker, 1);
  EXPECT_EQ(busy[0].closures, 1U);
  EXPECT_EQ(busy[0].first, kFunction);
  (void)lose(0);
  worker(1).report(worker(1).received[0], milliseconds(1));
  here_->progress();
  EXPECT_THAT(dispatcher_.busy_workers(), IsEmpty());
  const auto statuses = dispatcher_.worker_statuses();
  ASSERT_THAT(statuses, SizeIs(2));
  EXPECT_FALSE(statuses[0].alive);
  EXPECT_TRUE(statuses[1].alive);
  EXPECT_EQ(statuses[1].rank, worker(1).rank());
  EXPECT_EQ(statuses[1].ended, 1U);
  EXPECT_EQ(statuses[1].closures, 0U);
}

}  // namespace
}  // namespace capstan::coordinator

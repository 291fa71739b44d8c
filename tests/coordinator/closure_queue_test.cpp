// closure_queue_test.cpp -- the rules of TensorFlow's closure queue, including TensorFlow's test cases.
// Tests: src/strategy/closure_scheduler.hpp
// Tests: src/coordinator/scheduling/closure.cpp
// Tests: src/coordinator/scheduling/result.hpp
// Tests: src/coordinator/scheduling/waiting_closures.cpp
#include "coordinator/scheduling/closure_queue.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <random>
#include <thread>

#include "capstan/coordinator.hpp"
#include "support/expect_error.hpp"
#include "support/members.hpp"

namespace capstan::coordinator {
namespace {

using std::chrono::milliseconds;

/// Polls, since other threads change the queue.
class PollingWaiter final : public Waiter {
 public:
  bool wait(const std::function<bool()>& done, std::optional<Deadline> deadline) override {
    while (!done()) {
      if (deadline && std::chrono::steady_clock::now() >= *deadline) return false;
      waits = true;
      std::this_thread::sleep_for(std::chrono::microseconds(100));  // between two polls
    }
    return true;
  }
  void nudge() override { ++nudges; }
  void nudge_soon() override { ++announcements; }
  /// Called by another thread: returns once a thread waits for a condition that does not hold yet.
  void until_a_thread_waits() const {
    while (!waits) std::this_thread::yield();
  }

  std::atomic<int> nudges{0};
  std::atomic<int> announcements{0};
  std::atomic<bool> waits{false};
};

class ClosureQueueTest : public testing::Test {
 protected:
  std::shared_ptr<Result> put(std::uint32_t function = 0) { return queue_.put(function, {}); }
  void join() { EXPECT_TRUE(queue_.join(std::nullopt)); }
  void lose(int worker) {
    members_.set(members_.worker_ranks().at(static_cast<std::size_t>(worker)), cluster::MemberState::dead);
    queue_.fail_all_for(worker);
  }
  static cluster::Table table() {
    cluster::Table table = table_of(0, 8);
    table.restarts = 1;
    return table;
  }
  static void expect_cancelled(const Result& result) {
    expect_error_naming(Code::cancelled, {}, [&] { (void)detail::fetch_bytes(result); });
  }

  std::shared_ptr<PollingWaiter> waiter_ = std::make_shared<PollingWaiter>();
  cluster::Membership members_{table()};
  ClosureQueue queue_{0, waiter_, members_};
};

TEST_F(ClosureQueueTest, TakesClosuresInOrderAndCountsThemUntilTheyFinish) {
  const auto first = queue_.put(7, {std::byte{1}, std::byte{2}});
  put(8);
  EXPECT_FALSE(queue_.done());
  const auto a = queue_.take();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->function, 7U);
  EXPECT_EQ(a->arguments.size(), 2U);
  const auto b = queue_.take();
  ASSERT_TRUE(b);
  EXPECT_EQ(b->function, 8U);
  EXPECT_NE(a->id, b->id);
  EXPECT_FALSE(queue_.take());
  EXPECT_TRUE(queue_.empty());
  EXPECT_FALSE(detail::is_ready(*first));
  queue_.finish(*a, {std::byte{9}});
  EXPECT_TRUE(detail::is_ready(*first));
  EXPECT_EQ(detail::fetch_bytes(*first), std::vector{std::byte{9}});
  EXPECT_FALSE(queue_.done());
  queue_.finish(*b, {});
  EXPECT_TRUE(queue_.done());
  join();
  join();
}

TEST_F(ClosureQueueTest, NudgesTheTakerOfAnEmptyQueueAboutANewClosure) {
  put();
  EXPECT_EQ(waiter_->nudges, 1);
  put();
  EXPECT_EQ(waiter_->nudges, 1) << "no take happened since";
  EXPECT_TRUE(queue_.take());
  put();
  EXPECT_EQ(waiter_->nudges, 1) << "the last take found a closure, so another take follows";
  while (queue_.take()) continue;
  put();
  EXPECT_EQ(waiter_->nudges, 2);
  put();
  EXPECT_EQ(waiter_->nudges, 2);
}

TEST_F(ClosureQueueTest, NudgesAfterManyClosuresThoughNoneWasTaken) {
  put();
  for (int i = 0; i < 256; ++i) put();
  EXPECT_EQ(waiter_->nudges, 1 + 256 / 64);
}

TEST_F(ClosureQueueTest, AnnouncesTheFirstClosureThatItCollects) {
  EXPECT_FALSE(queue_.take());
  queue_.set_workers_busy(true);
  const int before = waiter_->nudges;
  for (int i = 0; i < 10; ++i) put();
  EXPECT_EQ(waiter_->nudges, before);
  EXPECT_EQ(waiter_->announcements, 1);
  while (queue_.take()) continue;
  put();
  EXPECT_EQ(waiter_->announcements, 2);
}

TEST_F(ClosureQueueTest, NudgesTheTakerWhenAnErrorWasThrown) {
  put();
  queue_.fail(*queue_.take(), Code::internal, "failed");
  EXPECT_FALSE(queue_.take());
  const int before = waiter_->nudges;
  expect_error(Code::internal, "failed", [&] { join(); });
  put();
  EXPECT_EQ(waiter_->nudges, before + 1);
}

// A5.3: better: 256 Ki queued closures take under 200 bytes each besides their arguments.
TEST_F(ClosureQueueTest, QueuedClosureTakesLessThan200BytesBesidesItsArguments) {
  constexpr std::size_t kClosures = 10'000;
  std::vector<std::shared_ptr<Result>> results;
  results.reserve(kClosures);
  const auto before = mallinfo2().uordblks;
  for (std::size_t i = 0; i < kClosures; ++i) results.push_back(put());
  EXPECT_LT(mallinfo2().uordblks - before, 200 * kClosures);
}

TEST_F(ClosureQueueTest, JoinOfAnEmptyQueueReturns) {
  join();
  EXPECT_TRUE(queue_.done());
}

// B1: same.
TEST_F(ClosureQueueTest, ReturnedClosureIsNext) {
  put(1);
  put(2);
  auto taken = queue_.take();
  queue_.put_back(std::move(*taken));
  EXPECT_FALSE(queue_.done());
  const auto again = queue_.take();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->function, 1U);
  queue_.finish(*again, {});
  queue_.finish(*queue_.take(), {});
  join();
}

TEST_F(ClosureQueueTest, TakesClosuresOfADeadWorkerAgainInOrder) {
  for (std::uint32_t i = 0; i < 5; ++i) put(i);
  std::vector<Closure> running;
  for (int i = 0; i < 3; ++i) running.push_back(*queue_.take());
  for (auto closure = running.rbegin(); closure != running.rend(); ++closure) queue_.put_back(*closure);
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(queue_.take()->function, i);
}

// B2: same.
TEST_F(ClosureQueueTest, FinishesEveryReturnedClosureOnce) {
  std::vector<std::shared_ptr<Result>> results;
  for (std::uint32_t label = 0; label < 5; ++label) results.push_back(put(label));
  std::array<std::atomic<int>, 5> executed{};
  std::vector<std::jthread> workers;
  for (int w = 0; w < 2; ++w) {
    workers.emplace_back([&] {
      bool first = true;
      while (!queue_.done()) {
        auto closure = queue_.take();
        if (!closure) {
          std::this_thread::yield();
        } else if (std::exchange(first, false)) {
          queue_.put_back(std::move(*closure));
        } else {
          ++executed[closure->function];
          queue_.finish(*closure, {});
        }
      }
    });
  }
  for (int i = 0; i < 4; ++i) join();
  workers.clear();
  for (const auto& count : executed) EXPECT_EQ(count, 1);
}

// B3: same.
TEST_F(ClosureQueueTest, JoinAfterTheLastFinishReturns) {
  put();
  queue_.finish(*queue_.take(), {});
  join();
}

// B4-B5: same.
TEST_F(ClosureQueueTest, JoinThrowsAnErrorThatOccursWhileItWaits) {
  put();
  const auto closure = queue_.take();
  const std::jthread worker([&] {
    waiter_->until_a_thread_waits();
    queue_.fail(*closure, Code::invalid_argument, "bad input");
  });
  expect_error(Code::invalid_argument, "bad input", [&] { join(); });
}

// A5.11, B6: same.
TEST_F(ClosureQueueTest, ThrowsTheFirstErrorOnceAndCancelsQueuedClosures) {
  const auto a = put(1);
  const auto b = put(2);
  const auto c = put(3);
  const auto first = queue_.take();
  const auto second = queue_.take();
  queue_.fail(*first, Code::invalid_argument, "first");
  queue_.fail(*second, Code::internal, "second");
  EXPECT_FALSE(queue_.take()) << "no closure starts while an error is pending";
  expect_error(Code::invalid_argument, "first", [&] { join(); });
  // Each failed closure keeps its own error; closures that had not run were cancelled.
  expect_error(Code::invalid_argument, "first", [&] { (void)detail::fetch_bytes(*a); });
  expect_error(Code::internal, "second", [&] { (void)detail::fetch_bytes(*b); });
  expect_cancelled(*c);
  join();
  EXPECT_TRUE(queue_.done());
}

// A5.6, B7-B9: same.
TEST_F(ClosureQueueTest, DoneAndPutThrowTheError) {
  put();
  queue_.fail(*queue_.take(), Code::out_of_range, "from done");
  expect_error(Code::out_of_range, "from done", [&] { (void)queue_.done(); });
  EXPECT_TRUE(queue_.done());
  put();
  queue_.fail(*queue_.take(), Code::out_of_range, "from put");
  expect_error(Code::out_of_range, "from put", [&] { put(); });
  EXPECT_TRUE(queue_.done());
}

// A5.11: same.
TEST_F(ClosureQueueTest, ThrowsAfterRunningClosuresHaveEnded) {
  put();
  const auto long_one = put();
  const auto failing = queue_.take();
  const auto running = queue_.take();
  queue_.fail(*failing, Code::internal, "failed");
  std::atomic<bool> finished{false};
  const std::jthread worker([&] {
    waiter_->until_a_thread_waits();
    finished = true;
    queue_.finish(*running, {std::byte{5}});
  });
  expect_error(Code::internal, "failed", [&] { join(); });
  EXPECT_TRUE(finished);
  EXPECT_EQ(detail::fetch_bytes(*long_one), std::vector{std::byte{5}});
}

// A5.11: same.
TEST_F(ClosureQueueTest, DropsFurtherErrorsWhileTheFirstIsPending) {
  put();
  put();
  const auto first = queue_.take();
  const auto second = queue_.take();
  queue_.fail(*first, Code::internal, "first");
  const std::jthread worker([&] {
    waiter_->until_a_thread_waits();
    queue_.fail(*second, Code::internal, "second");
  });
  expect_error(Code::internal, "first", [&] { join(); });
  join();
}

// B10: same.
TEST_F(ClosureQueueTest, WorksAfterAnErrorAndThrowsOnlyNewOnes) {
  put();
  queue_.fail(*queue_.take(), Code::internal, "old");
  EXPECT_THROW(join(), Error);
  const auto good = put(4);
  queue_.finish(*queue_.take(), {std::byte{1}});
  join();
  EXPECT_EQ(detail::fetch_bytes(*good).size(), 1U);
  put();
  queue_.fail(*queue_.take(), Code::internal, "new");
  expect_error(Code::internal, "new", [&] { join(); });
}

// B65: same.
TEST_F(ClosureQueueTest, CancelsAClosureOfADeadWorkerWhileAnErrorIsPending) {
  put();
  const auto lost = put();
  const auto failing = queue_.take();
  auto running = queue_.take();
  queue_.fail(*failing, Code::internal, "failed");
  const std::jthread worker([&] {
    waiter_->until_a_thread_waits();
    queue_.put_back(std::move(*running));
  });
  expect_error(Code::internal, "failed", [&] { join(); });
  expect_cancelled(*lost);
  EXPECT_TRUE(queue_.done());
}

TEST_F(ClosureQueueTest, JoinReturnsFalseAtItsTimeout) {
  EXPECT_TRUE(queue_.join(milliseconds(1)));
  put();
  EXPECT_FALSE(queue_.join(milliseconds(10)));
  const auto closure = queue_.take();
  EXPECT_FALSE(queue_.join(milliseconds(10)));
  queue_.finish(*closure, {});
  EXPECT_TRUE(queue_.join(milliseconds(10)));
}

TEST_F(ClosureQueueTest, JoinTimesOutWhileClosuresRunAfterAnError) {
  put();
  put();
  const auto failing = queue_.take();
  const auto running = queue_.take();
  queue_.fail(*failing, Code::internal, "failed");
  EXPECT_FALSE(queue_.join(milliseconds(20)));
  queue_.finish(*running, {});
  expect_error(Code::internal, "failed", [&] { (void)queue_.join(milliseconds(20)); });
}

// A5.3: same.
TEST_F(ClosureQueueTest, PutBlocksWhileTheQueueIsFull) {
  ClosureQueue small(2, waiter_, members_);
  (void)small.put(1, {});
  (void)small.put(2, {});
  std::atomic<bool> third{false};
  const std::jthread scheduler([&] {
    (void)small.put(3, {});
    third = true;
  });
  waiter_->until_a_thread_waits();
  EXPECT_FALSE(third);
  small.finish(*small.take(), {});
  while (!third) std::this_thread::yield();
  EXPECT_EQ(small.take()->function, 2U);
  EXPECT_EQ(small.take()->function, 3U);
}

TEST_F(ClosureQueueTest, ErrorEndsTheWaitForSpace) {
  ClosureQueue small(1, waiter_, members_);
  (void)small.put(1, {});
  const auto running = small.take();
  const auto queued = small.put(2, {});
  const std::jthread worker([&] {
    waiter_->until_a_thread_waits();
    small.fail(*running, Code::internal, "failed");
  });
  expect_error(Code::internal, "failed", [&] { (void)small.put(3, {}); });
  expect_cancelled(*queued);
}

TEST_F(ClosureQueueTest, BreakdownEndsEveryWaitAndIsThrownByEveryCall) {
  const auto running = put();
  const auto queued = put();
  const auto closure = queue_.take();
  const std::jthread dispatcher([&] {
    waiter_->until_a_thread_waits();
    queue_.break_down(Code::unavailable, "ps 0 is dead");
    queue_.break_down(Code::unavailable, "ps 1 is dead, too");
  });
  for (int i = 0; i < 2; ++i) expect_error(Code::unavailable, "ps 0 is dead", [&] { join(); });
  expect_error(Code::unavailable, "ps 0 is dead", [&] { put(); });
  expect_error(Code::unavailable, "ps 0 is dead", [&] { (void)queue_.done(); });
  expect_error(Code::unavailable, "ps 0 is dead", [&] { (void)detail::fetch_bytes(*running); });
  expect_error(Code::unavailable, "ps 0 is dead", [&] { (void)detail::fetch_bytes(*queued); });
  EXPECT_FALSE(queue_.take());
  queue_.finish(*closure, {std::byte{1}});  // too late
  expect_error(Code::unavailable, "ps 0 is dead", [&] { (void)detail::fetch_bytes(*running); });
}

TEST_F(ClosureQueueTest, BreakdownEndsAJoinThatWaitsAfterAnError) {
  put();
  put();
  const auto failing = queue_.take();
  const auto running = queue_.take();
  queue_.fail(*failing, Code::internal, "failed");
  const std::jthread dispatcher([&] {
    waiter_->until_a_thread_waits();
    queue_.break_down(Code::unavailable, "ps 0 is dead");
  });
  expect_error(Code::unavailable, "ps 0 is dead", [&] { join(); });
}

// A5.4, B12: same.
TEST_F(ClosureQueueTest, ClosureForOneWorkerIsIndependent) {
  const auto for_one = queue_.put_for(2, 9, {std::byte{3}});
  EXPECT_EQ(queue_.workers_with_closures(), std::vector<int>{2});
  EXPECT_TRUE(queue_.done());
  join();
  EXPECT_FALSE(queue_.take());
  EXPECT_FALSE(queue_.take_for(1));
  const auto closure = queue_.take_for(2);
  ASSERT_TRUE(closure);
  EXPECT_EQ(closure->function, 9U);
  EXPECT_EQ(closure->worker, 2);
  EXPECT_TRUE(queue_.workers_with_closures().empty());
  EXPECT_TRUE(queue_.done());
  queue_.finish(*closure, {std::byte{4}});
  EXPECT_EQ(detail::fetch_bytes(*for_one), std::vector{std::byte{4}});
}

TEST_F(ClosureQueueTest, ErrorOfAClosureForOneWorkerIsInItsResultOnly) {
  const auto failing = queue_.put_for(0, 1, {});
  queue_.fail(*queue_.take_for(0), Code::not_found, "no such file");
  expect_error(Code::not_found, "no such file", [&] { (void)detail::fetch_bytes(*failing); });
  EXPECT_NO_THROW(join());
  // An error of other closures does not cancel it.
  put();
  const auto kept = queue_.put_for(0, 1, {});
  queue_.fail(*queue_.take(), Code::internal, "failed");
  const auto closure = queue_.take_for(0);
  ASSERT_TRUE(closure);
  expect_error(Code::internal, "failed", [&] { join(); });
  queue_.finish(*closure, {});
  EXPECT_NO_THROW((void)detail::fetch_bytes(*kept));
}

TEST_F(ClosureQueueTest, RestartedWorkerGetsItsClosures) {
  lose(1);
  members_.add(joining_worker(members_.table(), 1), cluster::MemberState::joining);
  expect_error_naming(Code::aborted, {"worker 1"},
                      [&] { (void)detail::fetch_bytes(*queue_.put_for(1, 1, {})); });
  members_.set(members_.worker_ranks().at(1), cluster::MemberState::alive);
  const auto result = queue_.put_for(1, 1, {});
  auto closure = queue_.take_for(1);
  ASSERT_TRUE(closure);
  queue_.finish(*closure, {});
  EXPECT_NO_THROW((void)detail::fetch_bytes(*result));
}

TEST_F(ClosureQueueTest, FailsClosuresForADeadWorker) {
  const std::string dead = "worker 1 has ended, and this function was for it alone";
  const auto running = queue_.put_for(1, 1, {});
  const auto queued = queue_.put_for(1, 1, {});
  auto closure = queue_.take_for(1);
  ASSERT_TRUE(closure);
  lose(1);
  queue_.put_back(std::move(*closure));
  const auto late = queue_.put_for(1, 1, {});
  for (const auto& result : {running, queued, late}) {
    expect_error(Code::aborted, dead, [&] { (void)detail::fetch_bytes(*result); });
  }
  EXPECT_FALSE(queue_.take_for(1));
  EXPECT_FALSE(queue_.take());
  EXPECT_NO_THROW(join());
}

TEST_F(ClosureQueueTest, BreakdownFailsClosuresForOneWorker) {
  const auto running = queue_.put_for(0, 1, {});
  const auto closure = queue_.take_for(0);
  const auto queued = queue_.put_for(1, 1, {});
  queue_.break_down(Code::unavailable, "ps 0 is dead");
  for (const auto& result : {running, queued}) {
    expect_error(Code::unavailable, "ps 0 is dead", [&] { (void)detail::fetch_bytes(*result); });
  }
  expect_error(Code::unavailable, "ps 0 is dead", [&] { queue_.put_for(0, 1, {}); });
  EXPECT_FALSE(queue_.take_for(1));
}

/// Returns extras that insert the bytes of each result into the arguments at its offset.
ClosureQueue::Extras inputs(std::initializer_list<std::pair<std::size_t, std::shared_ptr<Result>>> results) {
  auto extras = std::make_unique<ClosureExtras>();
  for (const auto& [at, result] : results) extras->inputs.push_back({at, result, nullptr});
  return extras;
}
ClosureQueue::Extras options(int priority, int affinity = kAnyWorker,
                             std::optional<milliseconds> deadline = std::nullopt) {
  auto extras = std::make_unique<ClosureExtras>();
  extras->priority = priority;
  extras->affinity = affinity;
  if (deadline) extras->deadline = ClosureQueue::Clock::now() + *deadline;
  return extras;
}

// B23: better: a result may be an argument before it exists, and delays no other closure.
TEST_F(ClosureQueueTest, ClosureWaitsForItsArgumentsOutsideOfTheQueue) {
  const auto first = put(1);
  const auto second = put(2);
  const auto sum = queue_.put(3, {std::byte{7}, std::byte{8}}, inputs({{1, first}, {2, second}, {2, first}}));
  put(4);
  const auto a = queue_.take();
  const auto b = queue_.take();
  EXPECT_EQ(queue_.take()->function, 4U);
  EXPECT_FALSE(queue_.take());
  queue_.finish(*a, {std::byte{1}, std::byte{2}}, {5, 1000});
  EXPECT_FALSE(queue_.take());
  EXPECT_FALSE(queue_.done());
  EXPECT_EQ(queue_.statistics().waiting, 1U);
  queue_.finish(*b, {std::byte{3}});
  const auto closure = queue_.take();
  ASSERT_TRUE(closure);
  EXPECT_EQ(closure->function, 3U);
  EXPECT_EQ(closure->input_producer(), 5);
  std::vector<int> bytes;
  for (const std::byte byte : closure->complete_arguments()) bytes.push_back(static_cast<int>(byte));
  EXPECT_EQ(bytes, (std::vector<int>{7, 1, 2, 8, 3, 1, 2}));
  queue_.finish(*closure, {});
  EXPECT_TRUE(detail::is_ready(*sum));
}

TEST_F(ClosureQueueTest, ClosureThatWaitedPrecedesLaterOnes) {
  const auto input = put(1);
  queue_.put(2, {}, inputs({{0, input}}));
  put(3);
  put(4);
  queue_.finish(*queue_.take(), {});
  for (std::uint32_t i = 2; i <= 4; ++i) EXPECT_EQ(queue_.take()->function, i);
}

TEST_F(ClosureQueueTest, ErrorOfAnArgumentFailsItsDependents) {
  const auto input = put(1);
  const auto second = queue_.put(2, {}, inputs({{0, input}}));
  const auto third = queue_.put(3, {}, inputs({{0, second}}));
  const auto other = put(4);
  queue_.fail(*queue_.take(), Code::not_found, "no such file");
  for (const auto& result : {input, second, third}) {
    expect_error(Code::not_found, "no such file", [&] { (void)detail::fetch_bytes(*result); });
  }
  expect_error(Code::not_found, "no such file", [&] { join(); });
  expect_cancelled(*other);
  EXPECT_NO_THROW(join());
  // A closure that is scheduled later fails at once, and its error is thrown once.
  const auto late = queue_.put(5, {}, inputs({{0, third}}));
  expect_error(Code::not_found, "no such file", [&] { (void)detail::fetch_bytes(*late); });
  expect_error(Code::not_found, "no such file", [&] { join(); });
  EXPECT_NO_THROW(join());
}

TEST_F(ClosureQueueTest, CancelsClosuresThatWaitForArguments) {
  const auto input = put(1);
  const auto waits = queue_.put(2, {}, inputs({{0, input}}));
  put(3);
  const auto running = queue_.take();
  queue_.fail(*queue_.take(), Code::internal, "failed");
  queue_.put_back(*running);  // its worker has died
  expect_error(Code::internal, "failed", [&] { join(); });
  expect_cancelled(*input);
  expect_cancelled(*waits);
  EXPECT_TRUE(queue_.done());
  // A closure that depends on a cancelled one is cancelled as well, and join() throws.
  const auto late = queue_.put(4, {}, inputs({{0, input}}));
  expect_cancelled(*late);
  EXPECT_THROW(join(), Error);
  EXPECT_NO_THROW(join());
}

TEST_F(ClosureQueueTest, JoinThrowsTheErrorOfAClosureForOneWorkerThatIsAnArgument) {
  const auto input = queue_.put_for(0, 1, {});
  const auto needs = queue_.put(2, {}, inputs({{0, input}}));
  lose(0);
  expect_error_naming(Code::aborted, {"worker 0"}, [&] { join(); });
  EXPECT_TRUE(detail::is_ready(*needs));
  // The reverse: join() does not wait for a closure for one worker whose argument is a result of another one.
  const auto first = put(3);
  const auto mine = queue_.put_for(1, 4, {}, inputs({{0, first}}));
  EXPECT_FALSE(queue_.take_for(1));
  queue_.finish(*queue_.take(), {std::byte{6}});
  EXPECT_TRUE(queue_.done());
  const auto closure = queue_.take_for(1);
  ASSERT_TRUE(closure);
  EXPECT_EQ(closure->complete_arguments(), std::vector{std::byte{6}});
}

TEST_F(ClosureQueueTest, RejectsAResultOfAnotherQueue) {
  ClosureQueue other(0, waiter_, members_);
  const auto foreign = other.put(1, {});
  expect_error_naming(Code::invalid_argument, {"argument"}, [&] {
    queue_.put(2, {}, inputs({{0, foreign}}));
  });
  EXPECT_TRUE(queue_.done());
}

TEST_F(ClosureQueueTest, ErrorPropagatesAlongALongChainOfArguments) {
  auto last = put();
  const auto first = queue_.take();
  std::vector<std::shared_ptr<Result>> chain;
  for (int i = 0; i < 20'000; ++i) chain.push_back(last = queue_.put(1, {}, inputs({{0, last}})));
  queue_.fail(*first, Code::internal, "failed");
  for (const auto& result : chain) ASSERT_TRUE(detail::is_ready(*result));
  EXPECT_THROW(join(), Error);
}

TEST_F(ClosureQueueTest, TakesTheHigherPriorityFirst) {
  put(1);
  queue_.put(2, {}, options(-1));
  queue_.put(3, {}, options(5));
  put(4);
  queue_.put(5, {}, options(5));
  queue_.put(6, {}, options(7));
  std::vector<std::uint32_t> order;
  while (auto closure = queue_.take()) order.push_back(closure->function);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{6, 3, 5, 1, 4, 2}));
}

TEST_F(ClosureQueueTest, ReturnedClosureKeepsItsPriority) {
  queue_.put(1, {}, options(1));
  queue_.put(2, {}, options(1));
  const auto first = queue_.take();
  queue_.put(3, {}, options(2));
  queue_.put_back(*first);
  for (const std::uint32_t function : {3U, 1U, 2U}) EXPECT_EQ(queue_.take()->function, function);
}

TEST_F(ClosureQueueTest, PrefersAWorkerUnlessAnotherIsIdle) {
  queue_.put(1, {}, options(0, 2));
  put(2);
  queue_.put(3, {}, options(0, 2));
  EXPECT_EQ(queue_.take(1, true)->function, 2U) << "another closure is available";
  EXPECT_FALSE(queue_.take(1, false)) << "the worker is busy";
  EXPECT_TRUE(queue_.any_preferred());
  EXPECT_FALSE(queue_.empty());
  EXPECT_EQ(queue_.take(2, false)->function, 1U);
  EXPECT_EQ(queue_.take(1, true)->function, 3U) << "the worker is idle";
  EXPECT_TRUE(queue_.empty());
  EXPECT_FALSE(queue_.take(1, true));
  EXPECT_FALSE(queue_.any_preferred());
}

TEST_F(ClosureQueueTest, ClosureThatPrefersADeadWorkerRunsAnywhere) {
  put(1);
  queue_.put(2, {}, options(0, 2));
  put(3);
  lose(2);
  queue_.put(4, {}, options(0, 2));
  for (std::uint32_t i = 1; i <= 4; ++i) EXPECT_EQ(queue_.take(0, false)->function, i);
}

TEST_F(ClosureQueueTest, ClosureDoesNotStartAfterItsDeadline) {
  const auto begin = ClosureQueue::Clock::now();
  const auto late = queue_.put(1, {}, options(0, kAnyWorker, milliseconds(10)));
  const auto late_for_another = queue_.put(2, {}, options(0, 3, milliseconds(10)));
  const auto end = ClosureQueue::Clock::now();
  EXPECT_GE(queue_.next_deadline(), begin + milliseconds(10));
  EXPECT_LE(queue_.next_deadline(), end + milliseconds(10));
  EXPECT_FALSE(queue_.expire(begin + milliseconds(9)));
  EXPECT_TRUE(queue_.expire(end + milliseconds(11)));
  EXPECT_EQ(queue_.next_deadline(), ClosureQueue::Clock::time_point::max());
  EXPECT_TRUE(queue_.empty());
  for (const auto& result : {late, late_for_another}) {
    expect_error_naming(Code::deadline_exceeded, {}, [&] { (void)detail::fetch_bytes(*result); });
  }
  expect_error_naming(Code::deadline_exceeded, {}, [&] { join(); });
  EXPECT_NO_THROW(join());
  EXPECT_EQ(queue_.statistics().deadlines_exceeded, 2U);
}

TEST_F(ClosureQueueTest, DoesNotWaitForAClosureThatRunsPastItsDeadline) {
  const auto late = queue_.put(1, {}, options(0, kAnyWorker, milliseconds(10)));
  const auto closure = queue_.take();
  EXPECT_TRUE(queue_.expire(ClosureQueue::Clock::now() + milliseconds(11)));
  expect_error_naming(Code::deadline_exceeded, {}, [&] { join(); });
  const auto next = put(2);
  EXPECT_FALSE(queue_.done());
  queue_.finish(*closure, {std::byte{1}});  // after its deadline
  expect_error_naming(Code::deadline_exceeded, {}, [&] { (void)detail::fetch_bytes(*late); });
  queue_.finish(*queue_.take(), {});
  EXPECT_TRUE(queue_.done());
  // The same if its worker dies.
  queue_.put(3, {}, options(0, kAnyWorker, milliseconds(10)));
  const auto lost = queue_.take();
  EXPECT_TRUE(queue_.expire(ClosureQueue::Clock::now() + milliseconds(11)));
  queue_.put_back(*lost);
  EXPECT_THROW(join(), Error);
  EXPECT_TRUE(queue_.empty());
  EXPECT_TRUE(queue_.done());
}

TEST_F(ClosureQueueTest, ClosureThatEndsInTimeDoesNotExpire) {
  queue_.put(1, {}, options(0, kAnyWorker, milliseconds(10)));
  queue_.finish(*queue_.take(), {});
  EXPECT_EQ(queue_.next_deadline(), ClosureQueue::Clock::time_point::max());
  EXPECT_FALSE(queue_.expire(ClosureQueue::Clock::now() + std::chrono::hours(1)));
  join();
  // A cancelled closure does not expire, either.
  put(2);
  queue_.put(3, {}, options(0, kAnyWorker, milliseconds(10)));
  queue_.fail(*queue_.take(), Code::internal, "failed");
  EXPECT_THROW(join(), Error);
  EXPECT_EQ(queue_.next_deadline(), ClosureQueue::Clock::time_point::max());
}

TEST_F(ClosureQueueTest, DependentExpiresWithItsArgument) {
  const auto input = queue_.put(1, {}, options(0, kAnyWorker, std::chrono::hours(1)));
  const auto needs = queue_.put(2, {}, inputs({{0, input}}));
  // A closure that waits for its argument has its own deadline, too.
  auto both = options(0, kAnyWorker, milliseconds(5));
  both->inputs.push_back({0, input, nullptr});
  const auto deadline = *both->deadline;
  const auto sooner = queue_.put(3, {}, std::move(both));
  EXPECT_TRUE(queue_.expire(deadline));
  EXPECT_TRUE(detail::is_ready(*sooner));
  EXPECT_FALSE(detail::is_ready(*needs));
  EXPECT_TRUE(queue_.expire(ClosureQueue::Clock::now() + std::chrono::hours(1)));
  expect_error_naming(Code::deadline_exceeded, {}, [&] { (void)detail::fetch_bytes(*needs); });
  EXPECT_THROW(join(), Error);
  EXPECT_EQ(queue_.statistics().waiting, 0U);
}

// A5.20: better: counters and times are always recorded, also for queueing, at negligible cost.
TEST_F(ClosureQueueTest, CountsClosuresAndTimes) {
  const auto first = put(1);
  put(2);
  queue_.put_for(0, 3, {});
  EXPECT_EQ(queue_.statistics().scheduled, 3U);
  EXPECT_EQ(queue_.statistics().queued, 3U);
  const auto a = queue_.take();
  EXPECT_EQ(queue_.statistics().running, 1U);
  queue_.finish(*a, {}, {0, 3'000'000});
  queue_.put_back(*queue_.take());
  queue_.fail(*queue_.take(), Code::internal, "failed", {0, 1'000});
  EXPECT_THROW(join(), Error);
  (void)detail::fetch_bytes(*first);
  const CoordinatorStatistics all = queue_.statistics();
  EXPECT_EQ(all.finished, 1U);
  EXPECT_EQ(all.failed, 1U);
  EXPECT_EQ(all.moved, 1U);
  EXPECT_EQ(all.execution.count, 2U);
  EXPECT_NEAR(all.execution.seconds, 3.001e-3, 1e-9);
  EXPECT_EQ(all.execution.buckets[0], 1U);
  EXPECT_EQ(all.execution.quantile(0.5), Histogram::bound(0));
  EXPECT_GE(all.execution.quantile(1), 3e-3);
  EXPECT_LE(all.execution.quantile(1), 6e-3);
  EXPECT_GE(all.queueing.count, 1U);
  EXPECT_EQ(all.fetch.count, 1U);
  EXPECT_EQ(Histogram{}.quantile(0.5), 0);
}

// B11: same.
TEST_F(ClosureQueueTest, AllowsConcurrentFinishAndReturn) {
  constexpr int kClosures = 200;
  std::vector<std::shared_ptr<Result>> results;
  for (std::uint32_t i = 0; i < kClosures; ++i) results.push_back(put(i));
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([this, t] {
      std::mt19937 random(t);
      while (!queue_.done()) {
        auto closure = queue_.take();
        if (!closure) continue;
        if (random() % 2 == 0) {
          queue_.put_back(std::move(*closure));
        } else {
          queue_.finish(*closure, {std::byte(closure->function)});
        }
      }
    });
  }
  join();
  threads.clear();
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(detail::fetch_bytes(*results[i]), std::vector{std::byte(i)});
  }
}

/// Calls `act` when a thread waits.
class ActingWaiter final : public Waiter {
 public:
  bool wait(const std::function<bool()>& done, std::optional<Deadline>) override {
    act(done);
    EXPECT_TRUE(done());
    return true;
  }
  void nudge() override { ++nudges; }

  std::function<void(const std::function<bool()>& done)> act;
  int nudges = 0;
};

TEST(ClosureQueueHold, AwaitsRunningClosuresAndThoseThatADeadWorkerHadStarted) {
  const auto acting = std::make_shared<ActingWaiter>();
  const cluster::Membership members(table_of(0, 1));
  ClosureQueue queue(0, acting, members);
  for (int i = 0; i < 3; ++i) queue.put(0, {});
  const auto first = queue.take();
  auto second = queue.take();
  acting->act = [&](const std::function<bool()>& done) {
    EXPECT_FALSE(queue.take()) << "the third closure is held back";
    queue.finish(*first, {});
    EXPECT_FALSE(done());
    second->again = true;
    queue.put_back(std::move(*second));
    EXPECT_FALSE(done());
    const auto again = queue.take();
    ASSERT_TRUE(again);
    EXPECT_FALSE(queue.take());
    EXPECT_FALSE(done());
    queue.finish(*again, {});
  };
  queue.hold();
  EXPECT_FALSE(queue.take());
  queue.hold();  // there is nothing to wait for
  queue.release();
  EXPECT_FALSE(queue.take());
  const int nudges = acting->nudges;
  queue.release();
  EXPECT_GT(acting->nudges, nudges);
  const auto third = queue.take();
  ASSERT_TRUE(third);
  queue.finish(*third, {});
  EXPECT_TRUE(queue.done());
}

TEST(ClosureQueueHold, ThrowsTheErrorAndReleasesTheHold) {
  const auto acting = std::make_shared<ActingWaiter>();
  const cluster::Membership members(table_of(0, 1));
  ClosureQueue queue(0, acting, members);
  for (int i = 0; i < 2; ++i) queue.put(0, {});
  const auto first = queue.take();
  acting->act = [&](const std::function<bool()>&) { queue.fail(*first, Code::data_loss, "bad"); };
  expect_error(Code::data_loss, "bad", [&] { queue.hold(); });
  const auto later = queue.put(0, {});
  const auto taken = queue.take();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->result, later) << "the second closure was cancelled";
  queue.finish(*taken, {});
  queue.break_down(Code::unavailable, "gone");
  for (int i = 0; i < 2; ++i) expect_error(Code::unavailable, "gone", [&] { queue.hold(); });
}

TEST(ClosureQueueRecord, CountsClosuresSinceMarkRecordedOrNumberFrom) {
  const cluster::Membership members(table_of(0, 1));
  ClosureQueue queue(0, std::make_shared<ActingWaiter>(), members);
  queue.put(0, {});
  queue.put_for(0, 0, {});
  EXPECT_EQ(queue.since_recorded(), 2U);
  queue.mark_recorded();
  EXPECT_EQ(queue.since_recorded(), 0U);
  queue.put(0, {});
  EXPECT_EQ(queue.since_recorded(), 1U);
  queue.number_from(100);
  EXPECT_EQ(queue.since_recorded(), 0U);
  EXPECT_EQ(queue.next_id(), 100U);
}

}  // namespace
}  // namespace capstan::coordinator

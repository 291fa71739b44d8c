// coordinator_test.cpp -- the coordinator as TensorFlow's ClusterCoordinator, with ranks as threads.
// Tests: src/base/stacks.cpp
// Tests: src/coordinator/scheduling/task_states.cpp
#include "capstan/coordinator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "capstan/cancellation.hpp"
#include "capstan/dataset.hpp"
#include "strategy/context.hpp"
#include "support/end_worker.hpp"
#include "support/expect_error.hpp"
#include "support/poll.hpp"
#include "support/rank_threads.hpp"
#include "transport/message_types.hpp"

namespace capstan {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using Numbers = std::vector<std::int64_t>;

// Workers are threads of this process, so functions and tests share these variables.
std::atomic<bool> gate{false};
std::atomic<bool> other_gate{false};
std::atomic<bool> ask{false};  // whether a worker at the gate has received all earlier messages
std::atomic<int> answered{0};
std::atomic<int> arrived{0};
std::atomic<int> begun{0};
std::atomic<int> mapped{0};
std::atomic<int> to_end{0};

int wait_at_the_gate(int value) {
  ++arrived;
  poll_until([] { return gate || ask; });
  if (ask) {
    ending::await_own_messages();
    ++answered;
    poll_until([] { return gate.load(); });
  }
  return value;
}
void wait_at_the_other_gate() {
  ++arrived;
  poll_until([] { return other_gate.load(); });
}
std::atomic<int> cancellations{0};
int wait_for_cancellation() {
  if (poll_until([] { return cancelled(); })) ++cancellations;
  throw_if_cancelled();
  return 0;
}
int plus_one(int x) { return x + 1; }
double halve(double x) { return x / 2; }
int sum(const std::vector<int>& values, int more) {
  return std::accumulate(values.begin(), values.end(), more);
}
std::string join_names(const std::pair<std::string, int>& named, const std::map<int, std::string>& texts) {
  std::string out = named.first + std::to_string(named.second);
  for (const auto& [key, text] : texts) out += " " + std::to_string(key) + text;
  return out;
}
std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}
int my_index() { return current_worker_index(); }
int index_after(int) { return current_worker_index(); }
int refuse(int x) { throw Error(Code::invalid_argument, "not " + std::to_string(x)); }
int count_begun(int x) {
  ++begun;
  return x;
}
int append_to(const Counter& order) { return static_cast<int>(order.fetch_add(1)); }

void add_to(const Variable<float>& v, float amount) {
  v.push(std::vector<std::int64_t>{0}, std::vector<float>{amount});
}
float three_more(const Variable<float>& v) { return 3 + v.pull()[0]; }
std::int64_t next_and_add(PerWorker<Iterator<std::int64_t>> numbers, const Variable<float>& v) {
  add_to(v, 1);
  return numbers->next();
}
void add_next(PerWorker<Iterator<std::int64_t>> numbers, const Variable<float>& v) {
  add_to(v, static_cast<float>(numbers->next()));
}
Dataset<std::int64_t> from_one() { return Dataset<std::int64_t>::range(1, 1000); }
Dataset<std::int64_t> doubled_ones() {
  return Dataset<std::int64_t>::from_vector({1}).repeat().map([](std::int64_t x) {
    ++mapped;
    return 2 * x;
  });
}
Iterator<int> with_variable() {
  const Variable<float> inside("inside", Shape{1});
  return iterate(std::vector<int>{1});
}
std::atomic<int> living_iterators{0};
Iterator<std::int64_t> counted_from_one() {
  ++living_iterators;
  const auto counted = std::shared_ptr<void>(nullptr, [](void*) { --living_iterators; });
  return Iterator<std::int64_t>(
      [counted, next = std::int64_t{1}]() mutable { return std::optional(next++); });
}
int first_of(PerWorker<Iterator<int>> numbers) { return numbers->next(); }
std::int64_t add_nexts(PerWorker<Iterator<std::int64_t>> a, PerWorker<Iterator<std::int64_t>> b) {
  return a->next() + b->next();
}

/// Ends a rank as the end of a job does, so its fabrics close while other ranks use them.
void end_rank(const cluster::Member& member) {
  auto& fabric = strategy::Context::current().client().runtime().data();
  fabric.connect(member.rank, member.name(), member.control_address).send(transport::kShutdown, {});
  fabric.progress();
}
void end_ps(int index) { end_rank(strategy::Context::current().client().runtime().member(Role::ps, index)); }
void end_this_worker_and_ps(int index) {
  end_ps(index);
  ending::end_this_worker();
}
/// Ends the worker that runs it if `to_end` workers remain to be ended.
void perhaps_end() {
  if (to_end.fetch_sub(1) > 0) ending::end_this_worker();
}
std::int64_t count_or_end(const Counter& counter) {
  perhaps_end();
  return counter.fetch_add(1);
}
Dataset<std::int64_t> numbers_or_end() {
  perhaps_end();
  return from_one();
}
void count_next(PerWorker<Iterator<std::int64_t>> numbers, const Counter& counter) {
  (void)numbers->next();
  counter.fetch_add(1);
}

/// Captures standard error during its lifetime. For one thread.
class StderrText {
 public:
  StderrText() : file_(std::tmpfile()), before_(dup(STDERR_FILENO)) {
    std::fflush(stderr);
    dup2(fileno(file_), STDERR_FILENO);
  }
  ~StderrText() {
    std::fflush(stderr);
    dup2(before_, STDERR_FILENO);
    close(before_);
    std::fclose(file_);
  }
  StderrText(const StderrText&) = delete;
  StderrText& operator=(const StderrText&) = delete;

  std::string text() const {
    std::string text;
    std::array<char, 4096> block{};
    for (ssize_t got = 0;
         (got = pread(fileno(file_), block.data(), block.size(), static_cast<off_t>(text.size()))) > 0;)
      text.append(block.data(), static_cast<std::size_t>(got));
    return text;
  }

 private:
  std::FILE* file_;
  int before_;
};

int count_of(const std::string& word, const std::string& text) {
  int count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

class CoordinatorConformance : public testing::TestWithParam<RankThreadsOptions::Flags> {
 protected:
  static constexpr int kWorkers = 3;

  CoordinatorConformance() { start(GetParam()); }
  void start(RankThreadsOptions::Flags flags) {
    stop();
    gate = other_gate = ask = false;
    for (auto* number : {&answered, &arrived, &begun, &mapped, &to_end}) *number = 0;
    flags.emplace_back("ps", "2");
    ranks_ = std::make_unique<RankThreads>(
        RankThreadsOptions{.ranks = 3 + kWorkers, .flags = flags, .worker = ending::worker});
    strategy_ = std::make_unique<ParameterServerStrategy>(ranks_->cluster());
    began_ = Clock::now();
    coordinator_ = std::make_unique<ClusterCoordinator>(*strategy_);
  }
  void stop() {
    gate = other_gate = true;
    coordinator_.reset();
    strategy_.reset();
    ranks_.reset();
  }
  void TearDown() override { stop(); }
  Variable<float> variable(float start = 0) {
    const auto scope = strategy_->scope();
    return {"v", Shape{1}, initializers::constant(start), {optimizers::SGD{.learning_rate = -1}}};
  }
  Counter counter(const std::string& name) {
    const auto scope = strategy_->scope();
    return Counter(name);
  }
  /// Schedules one function for each worker that blocks until the gate opens.
  std::vector<RemoteValue<int>> block(int workers = kWorkers) {
    std::vector<RemoteValue<int>> out;
    const int before = arrived;
    for (int worker = 0; worker < workers; ++worker) {
      out.push_back(coordinator_->schedule_on<&wait_at_the_gate>(worker, worker));
    }
    EXPECT_TRUE(poll_until([&] { return arrived >= before + workers; }));
    return out;
  }

  /// Schedules a function with a deadline and waits until the deadline has passed. Repeats with a longer
  /// deadline if no worker has started the function, as on a busy machine.
  template <class Schedule>
  RemoteValue<int> not_ended_at_its_deadline(const Schedule& schedule) {
    for (milliseconds time(40);; time *= 4) {
      const RemoteValue<int> value = schedule(time);
      const std::string error = error_of(Code::deadline_exceeded, [&] { (void)value.fetch(); });
      EXPECT_EQ(error_of(Code::deadline_exceeded, [&] { coordinator_->join(); }), error);
      if (error == kNotEnded) return value;
      EXPECT_EQ(error, "the deadline of a function expired before it started");
    }
  }
  static constexpr const char* kNotEnded = "a function had not ended at its deadline";

  std::unique_ptr<RankThreads> ranks_;
  std::unique_ptr<ParameterServerStrategy> strategy_;
  std::unique_ptr<ClusterCoordinator> coordinator_;
  Clock::time_point began_;
};

// A5.1, B14: same.
TEST_P(CoordinatorConformance, CoordinatorsOfOneStrategyAreTheSame) {
  auto second = std::make_unique<ClusterCoordinator>(*strategy_);
  const auto v = variable();
  for (int i = 0; i < 5; ++i) second->schedule<&add_to>(v, 1);
  coordinator_->join();
  EXPECT_EQ(v.pull()[0], 5);
  EXPECT_EQ(second->schedule<&plus_one>(coordinator_->schedule<&plus_one>(1)).fetch(), 3);
  coordinator_.reset();
  EXPECT_EQ(second->schedule<&plus_one>(4).fetch(), 5);
}

// A5.7: same.
TEST_P(CoordinatorConformance, FetchesANestedStructure) {
  auto& c = *coordinator_;
  const auto one = c.schedule<&plus_one>(0);
  const auto two = c.schedule<&plus_one>(1);
  EXPECT_EQ(c.fetch(std::vector{one, two}), (std::vector{1, 2}));
  EXPECT_EQ(c.fetch(std::tuple{one, std::string("text"), std::pair{two, 7}, std::vector{std::vector{two}}}),
            (std::tuple{1, std::string("text"), std::pair{2, 7}, std::vector{std::vector{2}}}));
  EXPECT_EQ(c.fetch(std::map<int, RemoteValue<int>>{{5, two}}), (std::map<int, int>{{5, 2}}));
  EXPECT_EQ(c.fetch(3.5), 3.5);
}

// A5.8, B17: same.
TEST_P(CoordinatorConformance, FunctionReadsItsInputAndUpdatesAVariable) {
  const auto numbers = coordinator_->create_per_worker_dataset<&from_one>();
  const auto v = variable();
  EXPECT_EQ(coordinator_->schedule<&next_and_add>(numbers, v).fetch(), 1);
  EXPECT_GE(coordinator_->schedule<&next_and_add>(numbers, v).fetch(), 1);
  EXPECT_EQ(v.pull()[0], 2);
}

// B19: same.
TEST_P(CoordinatorConformance, ReadsAMappedDataset) {
  const auto twos = coordinator_->create_per_worker_dataset<&doubled_ones>();
  const auto v = variable();
  for (int i = 0; i < 5; ++i) coordinator_->schedule<&add_next>(twos, v);
  coordinator_->join();
  EXPECT_EQ(v.pull()[0], 10);
  EXPECT_EQ(mapped, 5);
}

// B20: same.
TEST_P(CoordinatorConformance, RejectsVariablesInADatasetFunction) {
  const auto numbers = coordinator_->create_per_worker_dataset<&with_variable>();
  coordinator_->schedule<&first_of>(numbers);
  try {
    coordinator_->join();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("variables are created on the coordinator"));
  }
}

// A5.2, B23: better: pending results are valid arguments, in any nested structure, with the usual
// conversions.
TEST_P(CoordinatorConformance, AcceptsPendingResultsAsArguments) {
  auto& c = *coordinator_;
  // A closure that waits for arguments counts as queued, so schedule blocks if the queue is short.
  const bool short_queue = !GetParam().empty() && GetParam().front().first == "queue-limit";
  gate = short_queue;
  const auto blocked = c.schedule<&wait_at_the_gate>(1);
  const auto two = c.schedule<&plus_one>(blocked);
  const auto more = c.schedule<&sum>(std::vector{two, blocked}, two);
  const auto half = c.schedule<&halve>(more);  // an int as a double
  const auto text = c.schedule<&repeat>(std::string("ab"), two);
  const auto all =
      c.schedule<&join_names>(std::pair{text, 5}, std::map<int, RemoteValue<std::string>>{{9, text}});
  EXPECT_EQ(c.schedule<&plus_one>(10).fetch(), 11) << "other functions are not delayed";
  if (!short_queue) {
    EXPECT_FALSE(two.ready());
  }
  gate = true;
  EXPECT_EQ(half.fetch(), 2.5);
  EXPECT_EQ(all.fetch(), "abab5 9abab");
  EXPECT_EQ(c.schedule_on<&plus_one>(1, half.ready() ? more : two).fetch(), 6);
  c.join();
}

// A5.2, B23: better: a function runs where its argument was computed if that worker is as idle as others.
TEST_P(CoordinatorConformance, FunctionPrefersTheWorkerOfItsArgument) {
  for (int worker = 0; worker < kWorkers; ++worker) {
    const auto value = coordinator_->schedule_on<&my_index>(worker);
    EXPECT_EQ(value.fetch(), worker);
    EXPECT_EQ(coordinator_->schedule<&index_after>(value).fetch(), worker);
  }
}

// A5.12, B37: better: dependents of a failed argument fail with its error, transitively.
TEST_P(CoordinatorConformance, ErrorPropagatesToDependents) {
  const auto failed = coordinator_->schedule<&refuse>(5);
  std::optional<RemoteValue<int>> next;
  try {
    next = coordinator_->schedule<&plus_one>(failed);
    coordinator_->join();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
  }
  if (next) expect_error(Code::invalid_argument, "not 5", [&] { (void)next->fetch(); });
  EXPECT_NO_THROW(coordinator_->join());
  const auto late = coordinator_->schedule<&plus_one>(failed);
  expect_error(Code::invalid_argument, "not 5", [&] { (void)late.fetch(); });
  expect_error(Code::invalid_argument, "not 5", [&] { coordinator_->join(); });
  EXPECT_NO_THROW(coordinator_->join());
}

// A5.2: better: a closure may have a priority, a preferred worker, and a deadline.
TEST_P(CoordinatorConformance, OptionsSetPriorityAndWorker) {
  coordinator_->run_on_every_worker<&my_index>();  // all functions have started
  for (int i = 0; i < 2 * kWorkers; ++i) {
    const int worker = i % kWorkers;
    EXPECT_EQ(coordinator_->schedule_with<&my_index>({.affinity = worker}).fetch(), worker);
  }
  expect_error_naming(Code::out_of_range, {"0 to 2", "3"},
                      [&] { coordinator_->schedule_with<&my_index>({.affinity = 3}); });
  expect_error_naming(Code::out_of_range, {"0 to 2", "-1"},
                      [&] { coordinator_->schedule_with<&my_index>({.affinity = -1}); });
  // When only one worker is free, it runs functions that prefer others.
  const auto blocked = block(2);
  std::vector<RemoteValue<int>> moved;
  for (int i = 0; i < 2; ++i) moved.push_back(coordinator_->schedule_with<&my_index>({.affinity = 0}));
  for (const auto& value : moved) EXPECT_EQ(value.fetch(), 2);
  gate = true;
}

// A5.2: better: a function that exceeds its deadline fails, and its worker stays usable.
TEST_P(CoordinatorConformance, ExceededDeadlineIsAnErrorAndTheWorkerContinues) {
  const auto begin = Clock::now();
  const auto stuck = not_ended_at_its_deadline([this](milliseconds time) {
    return coordinator_->schedule_with<&wait_at_the_gate>({.deadline = time}, 1);
  });
  EXPECT_GE(Clock::now() - begin, milliseconds(39));
  EXPECT_FALSE(gate);
  EXPECT_EQ(error_of(Code::deadline_exceeded, [&] { (void)stuck.fetch(); }), kNotEnded);
  EXPECT_EQ(coordinator_->schedule<&plus_one>(1).fetch(), 2) << "other workers run functions";
  gate = true;
  for (int worker = 0; worker < kWorkers; ++worker) {
    EXPECT_EQ(coordinator_->schedule_on<&my_index>(worker).fetch(), worker);
  }
  EXPECT_NO_THROW(coordinator_->join());
  // A function that ends before its deadline.
  using namespace std::chrono_literals;
  EXPECT_EQ(
      coordinator_->schedule_with<&plus_one>({.priority = 1, .affinity = 0, .deadline = 60s}, 1).fetch(), 2);
}

// A5.5: better: join takes a timeout.
TEST_P(CoordinatorConformance, DeadlinesBeyondTheRangeOfTheClockNeverExpire) {
  for (const milliseconds time : {milliseconds::max(), milliseconds::max() - milliseconds(1)}) {
    EXPECT_EQ(coordinator_->schedule_with<&plus_one>({.deadline = time}, 1).fetch(), 2);
    coordinator_->schedule<&plus_one>(1);
    EXPECT_TRUE(coordinator_->join(time));
  }
  // A deadline that has passed when the function is scheduled.
  const auto late = coordinator_->schedule_with<&plus_one>({.deadline = milliseconds::min()}, 1);
  (void)error_of(Code::deadline_exceeded, [&] { (void)late.fetch(); });
  (void)error_of(Code::deadline_exceeded, [&] { coordinator_->join(); });
  const auto blocked = coordinator_->schedule<&wait_at_the_gate>(1);
  EXPECT_FALSE(coordinator_->join(milliseconds::min()));
  gate = true;
  EXPECT_EQ(blocked.fetch(), 1);
}

// A5.2: better: a function that runs at its deadline is cancelled.
TEST_P(CoordinatorConformance, FunctionSeesItsCancellationAtTheDeadline) {
  cancellations = 0;
  not_ended_at_its_deadline([this](milliseconds time) {
    return coordinator_->schedule_with<&wait_for_cancellation>({.deadline = time});
  });
  EXPECT_TRUE(poll_until([] { return cancellations > 0; }));
  // Its exception is not an error of the job, whose functions run on the same worker.
  for (int i = 0; i < 4 * kWorkers; ++i) EXPECT_EQ(coordinator_->schedule<&plus_one>(i).fetch(), i + 1);
  EXPECT_NO_THROW(coordinator_->join());
}

// A5.2: better: a function never starts after its deadline, in any queue.
TEST_P(CoordinatorConformance, NoFunctionStartsAfterItsDeadline) {
  const auto blocked = block();
  milliseconds time{};
  not_ended_at_its_deadline([&](milliseconds this_time) {
    time = this_time;
    return coordinator_->schedule_with<&count_begun>({.deadline = time}, 1);
  });
  // A worker holds the function, and measures its deadline from the arrival of the message.
  ask = true;
  ASSERT_TRUE(poll_until([] { return answered == kWorkers; }));
  std::this_thread::sleep_for(time);  // until its deadline has passed on the worker, too
  gate = true;
  EXPECT_EQ(coordinator_->schedule<&plus_one>(1).fetch(), 2);
  for (const auto& value : blocked) (void)value.fetch();
  coordinator_->run_on_every_worker<&my_index>();
  EXPECT_EQ(begun, 0);
}

// A5.2: better: queued functions run in the order of their priority.
TEST_P(CoordinatorConformance, HigherPriorityRunsFirst) {
  start({{"max-inflight-per-worker", "1"}});
  const auto order = counter("order");
  const auto blocked = block(kWorkers - 1);
  coordinator_->schedule_on<&wait_at_the_other_gate>(kWorkers - 1);  // the worker that will run all functions
  ASSERT_TRUE(poll_until([] { return arrived == kWorkers; }));
  std::vector<RemoteValue<int>> low, high;
  for (int i = 0; i < 3; ++i) {
    low.push_back(coordinator_->schedule_with<&append_to>({.priority = -1}, order));
    high.push_back(coordinator_->schedule_with<&append_to>({.priority = 1}, order));
  }
  const auto middle = coordinator_->schedule<&append_to>(order);
  other_gate = true;
  EXPECT_THAT(coordinator_->fetch(high), ElementsAre(0, 1, 2));
  EXPECT_EQ(middle.fetch(), 3);
  EXPECT_THAT(coordinator_->fetch(low), ElementsAre(4, 5, 6));
  gate = true;
}

// A5.18, B31: same.
TEST_P(CoordinatorConformance, WorkersStartSuccessively) {
  start({{"schedule-start-delay", "60ms"}, {"schedule-start-delay-max", "100ms"}});
  std::vector<RemoteValue<int>> first;
  for (int worker = 0; worker < kWorkers; ++worker)
    first.push_back(coordinator_->schedule_on<&my_index>(worker));
  const std::vector<milliseconds> delays{milliseconds(0), milliseconds(60), milliseconds(100)};
  for (std::size_t worker = 0; worker < delays.size(); ++worker) {
    EXPECT_EQ(first[worker].fetch(), static_cast<int>(worker));
    EXPECT_GE(Clock::now() - began_, delays[worker]);
  }
}

// B28: same.
TEST_P(CoordinatorConformance, IteratorsAreCreatedRepeatedly) {
  for (int i = 0; i < 10; ++i) {
    const auto a = coordinator_->create_per_worker_dataset<&counted_from_one>();
    const auto b = coordinator_->create_per_worker_dataset<&counted_from_one>();
    EXPECT_GE(coordinator_->schedule<&add_nexts>(a, b).fetch(), 2);
  }
  EXPECT_TRUE(poll_until([] { return living_iterators == 0; }))
      << living_iterators;  // earlier iterators are freed
}

// A5.19, B81: better: every rank logs its stacks, and the coordinator logs the function of each worker.
TEST_P(CoordinatorConformance, WatchdogLogsStacksOfAllRanks) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer delays the signal that requests the stack of a waiting thread";
#endif
  start({{"watchdog-timeout", "150ms"}});
  const StderrText log;
  std::this_thread::sleep_for(milliseconds(200));  // longer than the timeout, while nothing is in flight
  EXPECT_EQ(count_of("no function has ended", log.text()), 0);
  const auto stuck = coordinator_->schedule_with<&wait_at_the_gate>({.affinity = 1}, 1);
  const auto all_have_logged = [&log] {
    const std::string text = log.text();
    for (const std::string rank : {"coordinator", "ps 0", "ps 1", "worker 0", "worker 1", "worker 2"})
      if (count_of("==== End of stacks of " + rank, text) == 0) return false;
    return count_of("no function has ended", text) >= 2;  // the watchdog continues
  };
  EXPECT_TRUE(poll_until(all_have_logged)) << log.text();
  gate = true;
  coordinator_->join();
  EXPECT_THAT(log.text(), HasSubstr("no function has ended for 0.15 s; 1 are with workers, 0 are queued"));
  EXPECT_THAT(log.text(), HasSubstr("worker 1 has 1 of them"));
  EXPECT_THAT(log.text(), HasSubstr("wait_at_the_gate"));
  const int before = count_of("no function has ended", log.text());
  std::this_thread::sleep_for(milliseconds(600));  // long enough for four further reports
  EXPECT_LE(count_of("no function has ended", log.text()), before + 1)
      << "one report may have been in progress";
}

// A5.20, B82: same.
TEST_P(CoordinatorConformance, CountsFunctionsAndTimes) {
  const auto a = coordinator_->schedule<&plus_one>(1);
  coordinator_->join();
  const auto b = coordinator_->schedule<&plus_one>(1);
  EXPECT_EQ(a.fetch() + b.fetch(), 4);
  const CoordinatorStatistics all = coordinator_->statistics();
  EXPECT_EQ(all.scheduled, 2U);
  EXPECT_EQ(all.finished, 2U);
  EXPECT_EQ(all.execution.count, 2U);
  EXPECT_EQ(all.fetch.count, 2U);
  EXPECT_GE(all.queueing.count, 1U);
  EXPECT_EQ(all.failed + all.cancelled + all.queued + all.waiting + all.running, 0U);
}

// B55: same.
TEST_P(CoordinatorConformance, FiveThousandFunctionsReturn) {
  const auto v = variable(1);
  std::vector<RemoteValue<float>> values;
  for (int i = 0; i < 5000; ++i) values.push_back(coordinator_->schedule<&three_more>(v));
  for (const auto& value : values) ASSERT_EQ(value.fetch(), 4);
  coordinator_->join();
}

// B60-B64: same.
TEST_P(CoordinatorConformance, ResultsAndVariablesSurviveTheirWorker) {
  const auto v = variable(2);
  const auto value = coordinator_->schedule_on<&three_more>(1, v);
  EXPECT_EQ(value.fetch(), 5);
  coordinator_->schedule_on<&ending::end_this_worker>(1);
  ASSERT_TRUE(poll_until([this] { return coordinator_->workers() == kWorkers - 1; }));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(value.fetch(), 5);
  EXPECT_EQ(v.pull()[0], 2);
  EXPECT_EQ(coordinator_->schedule<&halve>(value).fetch(), 2.5) << "a result must outlive its worker";
  EXPECT_EQ(coordinator_->schedule_with<&plus_one>({.affinity = 1}, 1).fetch(), 2)
      << "the preferred worker is dead";
}

// B66-B67: same.
TEST_P(CoordinatorConformance, WorkerMayDieWhileItCreatesItsDataset) {
  const auto done = counter("done");
  to_end = 1;
  const auto numbers = coordinator_->create_per_worker_dataset<&numbers_or_end>();
  for (int i = 0; i < 10; ++i) coordinator_->schedule<&count_next>(numbers, done);
  coordinator_->join();
  EXPECT_GE(done.value(), 10);
  EXPECT_EQ(coordinator_->workers(), kWorkers - 1);
}

// B71: same.
TEST_P(CoordinatorConformance, TwoWorkersMayDie) {
  const auto done = counter("done");
  to_end = 2;
  for (int i = 0; i < 20; ++i) coordinator_->schedule<&count_or_end>(done);
  coordinator_->join();
  EXPECT_GE(done.value(), 20);
  EXPECT_EQ(coordinator_->workers(), kWorkers - 2);
}

// A5.17, B80: same.
TEST_P(CoordinatorConformance, ReportsTheStateOfEachTask) {
  using Names = std::vector<std::string>;
  const auto lost = [this] {
    Names names;
    for (const TaskState& state : coordinator_->task_states()) {
      if (state.dead) names.push_back(std::string(to_string(state.role)) + std::to_string(state.index));
    }
    return names;
  };
  const auto all = coordinator_->task_states();
  ASSERT_EQ(all.size(), kWorkers + 2U);
  for (const TaskState& state : all) {
    EXPECT_EQ(state.name, ranks_->runtime().member(state.role, state.index).name());
  }
  EXPECT_TRUE(lost().empty());
  coordinator_->schedule_on<&ending::end_this_worker>(1);
  EXPECT_TRUE(poll_until([&] { return lost() == Names{"worker1"}; }));
  // No function depends on the dead ranks.
  coordinator_->schedule_on<&end_ps>(0, 1);
  EXPECT_TRUE(poll_until([&] { return lost() == Names{"worker1", "ps1"}; }));
}

// B73: same.
TEST_P(CoordinatorConformance, PsMayDieWhileAWorkerIsReplaced) {
  coordinator_->schedule<&end_this_worker_and_ps>(1);
  EXPECT_THAT(error_of(Code::unavailable, [this] { coordinator_->join(); }), HasSubstr("ps 1"));
  EXPECT_THAT(error_of(Code::unavailable, [this] { coordinator_->schedule<&my_index>(); }),
              HasSubstr("ps 1"));
}

// Examples are numbers; the model is right about the first i examples of split i.
struct Score {
  std::int64_t right = 0;
  std::int64_t examples = 0;
};
Score evaluate(const Split& split, std::int64_t examples) {
  perhaps_end();
  Score score;
  for (const std::int64_t x : Dataset<std::int64_t>::range(examples).shard(split.count, split.index)) {
    score.right += x / split.count < split.index ? 1 : 0;
    ++score.examples;
  }
  return score;
}

// A6.3: same.
TEST_P(CoordinatorConformance, EvaluationIsExactIfWorkersDie) {
  to_end = 2;
  Score all;
  for (const Score& score : coordinator_->fetch(coordinator_->schedule_each<&evaluate>(splits(32), 2048))) {
    all.right += score.right;
    all.examples += score.examples;
  }
  EXPECT_EQ(all.examples, 2048);
  EXPECT_EQ(all.right, 31 * 32 / 2);  // the first i of the 64 examples of split i
  EXPECT_EQ(coordinator_->workers(), kWorkers - 2);
  expect_error_naming(Code::invalid_argument, {"splits", "-1"}, [] { (void)splits(-1); });
}

void evaluate_some(PerWorker<Iterator<std::int64_t>> numbers, const Variable<float>& threshold,
                   const Counter& right) {
  for (int i = 0; i < 10; ++i) {
    if (static_cast<float>(numbers->next()) > threshold.pull()[0]) right.fetch_add(1);
  }
}

// A6.1, A6.2: same.
TEST_P(CoordinatorConformance, EvaluationOnTheCoordinatorAndOnWorkers) {
  const auto threshold = variable(0.5);
  const auto right = counter("right");
  const auto numbers = coordinator_->create_per_worker_dataset<&from_one>();
  for (int i = 0; i < 4; ++i) coordinator_->schedule<&evaluate_some>(numbers, threshold, right);
  coordinator_->join();
  EXPECT_EQ(right.value(), 40);
  int here = 0;
  for (const std::int64_t x : from_one().take(40))
    here += static_cast<float>(x) > threshold.pull()[0] ? 1 : 0;
  EXPECT_EQ(here, 40);
}

// own: better: one closure for each split of a range or a dataset.
TEST_P(CoordinatorConformance, OneClosureForEachSplit) {
  auto& c = *coordinator_;
  EXPECT_THAT(c.fetch(c.schedule_each<&plus_one>(std::vector{1, 5, 9})), ElementsAre(2, 6, 10));
  const auto names = Dataset<std::string>::from_vector({"a", "b"});
  EXPECT_THAT(c.fetch(c.schedule_each<&repeat>(names, 3)), ElementsAre("aaa", "bbb"));
  // Another function sums them without a round trip to the program.
  EXPECT_EQ(c.schedule<&sum>(c.schedule_each<&plus_one>(std::vector{1, 2, 3}), 100).fetch(), 109);
  EXPECT_TRUE(c.schedule_each<&plus_one>(std::vector<int>{}).empty());
}

std::string name_of(const testing::TestParamInfo<RankThreadsOptions::Flags>& info) {
  std::string name = info.param.empty() ? "plain" : info.param.front().first;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Also runs TensorFlow's cases with a queue of two closures, and with a delayed start.
INSTANTIATE_TEST_SUITE_P(Settings, CoordinatorConformance,
                         testing::Values(RankThreadsOptions::Flags{},
                                         RankThreadsOptions::Flags{{"queue-limit", "2"}},
                                         RankThreadsOptions::Flags{{"schedule-start-delay", "20ms"},
                                                                   {"schedule-start-delay-max", "40ms"}}),
                         name_of);

}  // namespace
}  // namespace capstan

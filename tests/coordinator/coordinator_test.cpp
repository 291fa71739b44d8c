// coordinator_test.cpp -- functions scheduled on workers that are threads, or embedded in this process.
#include "capstan/coordinator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "capstan/cancellation.hpp"
#include "capstan/per_worker.hpp"
#include "capstan/variable_options.hpp"
#include "support/asleep.hpp"
#include "support/expect_error.hpp"
#include "support/poll.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using std::chrono::milliseconds;

// Workers are threads of this process, so functions and tests share these variables.
std::atomic<int> arrived{0};
std::atomic<bool> gate{false};
std::atomic<int> made{0};

double add(double a, int b) { return a + b; }

using Nest = std::tuple<int, std::pair<int, int>, std::vector<int>, std::map<std::string, int>>;
Nest nest(int x) { return {x + 1, {x + 2, x + 3}, {x + 4}, {{"v", x}}}; }

void add_to(const Variable<float>& v, float amount) {
  v.push(std::vector<std::int64_t>{0}, std::vector<float>{amount});
}
float read(const Variable<float>& v) { return v.pull()[0]; }
std::int64_t count(const Counter& counter) { return counter.fetch_add(1); }

void refuse(const std::string& text) { throw Error(Code::invalid_argument, text); }
void throw_plain() { throw std::runtime_error("plain words"); }
void throw_number() { throw 5; }

int index_when_all_are_here(int workers) {
  ++arrived;
  if (!poll_until([workers] { return arrived >= workers; })) throw Error(Code::deadline_exceeded, "alone");
  return current_worker_index();
}
int wait_at_the_gate(int value) {
  ++arrived;
  if (!poll_until([] { return gate.load(); })) throw Error(Code::deadline_exceeded, "the gate stayed shut");
  return value;
}

std::atomic<bool> may_fail{false};
std::atomic<int> ran{0};
void fail_when_told() {
  ++arrived;
  if (!poll_until([] { return may_fail.load(); })) throw Error(Code::deadline_exceeded, "not told to fail");
  throw Error(Code::invalid_argument, "told to fail");
}
void count_run() { ++ran; }

std::atomic<int> called_back{0};
void require_cancellation() {
  if (!poll_until([] { return cancelled(); })) throw Error(Code::deadline_exceeded, "not cancelled");
}
int run_until_cancelled() {
  const int before = called_back;
  const CancellationCallback callback([] { ++called_back; });
  ++arrived;
  require_cancellation();
  // Keeps the callback alive until it has run, which may be after cancelled() has become true.
  if (!poll_until([before] { return called_back > before; })) {
    throw Error(Code::deadline_exceeded, "not called back");
  }
  throw_if_cancelled();
  return 0;
}
/// Number of calls of a cancelled function that threw.
std::atomic<int> refused{0};
void call_everything(const Variable<float>& v, const Counter& counter, PerWorker<Iterator<int>> numbers) {
  const std::vector<std::int64_t> ids{0};
  const std::vector<float> one{1};
  std::vector<float> out(1);
  const Pending started = v.pull_async(0, out);  // ended by its destructor, after the cancellation
  v.push(ids, one);
  ++arrived;
  require_cancellation();
  const std::vector<std::function<void()>> calls{
      [&] { (void)v.pull(); },
      [&] { (void)v.lookup(ids); },
      [&] { (void)v.lookup_async(ids, out); },
      [&] { v.push(ids, one); },
      [&] { v.push_dense(one); },
      [&] { v.assign(one); },
      [&] { v.scatter_add(ids, one); },
      [&] { v.flush(); },
      [&] { counter.add(1); },
      [&] { (void)counter.fetch_add(1); },
      [&] { (void)numbers->next(); },
      [&] { (void)numbers->try_next(); },
  };
  for (const auto& call : calls) {
    try {
      call();
    } catch (const Error& error) {
      if (error.code() == Code::cancelled) ++refused;
    }
  }
  if (refused == static_cast<int>(calls.size())) throw_if_cancelled();
}
void wait_for_other_workers(const UpdateGroup& group) {
  ++arrived;
  try {
    group.end_step();
  } catch (const Error&) {
    group.leave();
    throw;
  }
}
/// A dataset whose element is available once the gate is open.
Dataset<int> behind_the_gate() {
  return Dataset<int>::from_vector({1})
      .map([](int x) {
        poll_until([] { return gate.load(); });
        return x;
      })
      .prefetch(1);
}
int next_behind_the_gate(PerWorker<Iterator<int>> numbers) {
  ++arrived;
  return numbers->next();
}

std::vector<std::uint8_t> reverse(std::vector<std::uint8_t> bytes) {
  std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

struct Tally {
  int worker = 0;
  int calls = 0;
};
Tally make_tally(int start) {
  ++made;
  return {current_worker_index(), start};
}
std::pair<int, int> use_tally(PerWorker<Tally> tally) { return {tally->worker, ++tally->calls}; }

Iterator<int> every_nth(int limit, int workers) {
  std::vector<int> mine;
  for (int i = current_worker_index(); i < limit; i += workers) mine.push_back(i);
  return iterate(mine);
}
std::pair<int, int> sum_when_all_are_here(PerWorker<Iterator<int>> numbers, int workers) {
  index_when_all_are_here(workers);
  int sum = 0;
  while (const auto next = numbers->try_next()) sum += *next;
  return {current_worker_index(), sum};
}
Iterator<std::vector<int>> batches(int size) {
  std::vector<std::vector<int>> out;
  for (int i = 1; i <= 10; ++i) {
    if (out.empty() || static_cast<int>(out.back().size()) == size) out.emplace_back();
    out.back().push_back(i);
  }
  return iterate(out);
}
std::vector<int> next_batch(PerWorker<Iterator<std::vector<int>>> dataset) { return dataset->next(); }
int add_firsts(PerWorker<Iterator<int>> a, PerWorker<Iterator<int>> b) { return a->next() + b->next(); }
Iterator<int> constant(int value) { return iterate(std::vector<int>{value}, true); }
Iterator<int> broken_dataset(int) {
  ++made;
  throw Error(Code::not_found, "no such file");
}
int first_of(PerWorker<Iterator<int>> numbers) { return numbers->next(); }

struct ClusterShape {
  std::string name;
  bool embedded = false;
  int workers = 3;
  std::string queue_limit = "1000";
  std::string inflight = "0";
};

class CoordinatorTest : public testing::TestWithParam<ClusterShape> {
 protected:
  void SetUp() override {
    arrived = 0;
    gate = false;
    made = 0;
    may_fail = false;
    ran = called_back = refused = 0;
    const ClusterShape& shape = GetParam();
    const RankThreadsOptions::Flags flags{{"ps", "2"},
                                          {"heap-slab-bytes", "1MiB"},
                                          {"workers", std::to_string(shape.workers)},
                                          {"queue-limit", shape.queue_limit},
                                          {"max-inflight-per-worker", shape.inflight}};
    if (shape.embedded) {
      Settings settings;
      for (const auto& [name, value] : flags) settings.set_from_flag(name, value);
      start(Cluster(cluster::Runtime::embedded_cluster(settings)));
    } else {
      ranks_ = std::make_unique<RankThreads>(RankThreadsOptions{.ranks = 3 + shape.workers, .flags = flags});
      start(ranks_->cluster());
    }
  }
  void start(const Cluster& cluster) {
    strategy_ = std::make_unique<ParameterServerStrategy>(cluster);
    coordinator_ = std::make_unique<ClusterCoordinator>(*strategy_);
  }
  void TearDown() override {
    gate = may_fail = true;
    coordinator_.reset();
    strategy_.reset();
    ranks_.reset();
  }
  Variable<float> variable(const std::string& name = "v") {
    const auto scope = strategy_->scope();
    return Variable<float>(name, Shape{1}, {}, {optimizers::SGD{.learning_rate = -1}});
  }
  /// Schedules functions that wait at the gate and keep every worker busy, without filling the queue.
  std::vector<RemoteValue<int>> block_all_workers() {
    std::vector<RemoteValue<int>> out;
    // By default, a worker takes two functions of unknown duration.
    const int inflight = std::stoi(GetParam().inflight);
    const int capacity = GetParam().workers * (inflight == 0 ? 2 : inflight);
    for (int i = 0; i < capacity; ++i) out.push_back(coordinator_->schedule<&wait_at_the_gate>(i));
    EXPECT_TRUE(poll_until([] { return arrived >= GetParam().workers; }));
    return out;
  }
  int workers() const { return GetParam().workers; }
  /// Schedules a function that fails while another one runs; join throws.
  void fail_beside_a_running_function() {
    ASSERT_TRUE(poll_until([] { return arrived == 1; }));
    coordinator_->schedule<&refuse>("failed");
    expect_error(Code::invalid_argument, "failed", [&] { coordinator_->join(); });
  }

  std::unique_ptr<RankThreads> ranks_;
  std::unique_ptr<ParameterServerStrategy> strategy_;
  std::unique_ptr<ClusterCoordinator> coordinator_;
};

// A5.7: same.
TEST_P(CoordinatorTest, FetchesAResult) {
  const auto value = coordinator_->schedule<&add>(1.5F, 2L);  // converted to the parameters' types
  EXPECT_EQ(coordinator_->fetch(value), 3.5);
  EXPECT_TRUE(value.ready());
  EXPECT_EQ(value.fetch(), 3.5);
  const auto copy = value;  // NOLINT: a copy is the same result
  EXPECT_EQ(copy.fetch(), 3.5);
  EXPECT_EQ(coordinator_->workers(), workers());
}

int my_index() { return current_worker_index(); }

TEST_P(CoordinatorTest, SequentialFunctionsGoToTheWorkerThatIsAwake) {
  const int first = coordinator_->schedule<&my_index>().fetch();
  for (int i = 1; i < 2 * workers(); ++i) {
    EXPECT_EQ(coordinator_->schedule<&my_index>().fetch(), first);
  }
}

int mostly_short(bool wait, int x) { return wait ? wait_at_the_gate(x) : x; }

// A5.3: better: a worker holds several closures, and returns those that it has not started when another is
// idle.
TEST_P(CoordinatorTest, IdleWorkerTakesClosuresFromABusyOne) {
  if (workers() == 1) GTEST_SKIP() << "there is no other worker";
  // A worker takes many functions of a kind that has been short; here, one of them blocks.
  for (int i = 0; i < 2000; ++i) coordinator_->schedule<&mostly_short>(false, i);
  coordinator_->join();
  const auto stuck = coordinator_->schedule<&mostly_short>(true, -1);
  std::vector<RemoteValue<int>> others;
  const int count = std::stoi(GetParam().queue_limit) > 10 ? 400 : 1;
  for (int i = 0; i < count; ++i) others.push_back(coordinator_->schedule<&mostly_short>(false, i));
  for (int i = 0; i < count; ++i) EXPECT_EQ(others[static_cast<std::size_t>(i)].fetch(), i);
  EXPECT_FALSE(stuck.ready());
  gate = true;
  EXPECT_EQ(stuck.fetch(), -1);
}

// A5.4: better: schedule_on is public, and run_on_every_worker is built on it.
TEST_P(CoordinatorTest, FunctionForOneWorkerRunsOnThatWorker) {
  for (int round = 0; round < 3; ++round) {
    for (int worker = 0; worker < workers(); ++worker) {
      EXPECT_EQ(coordinator_->schedule_on<&my_index>(worker).fetch(), worker);
    }
  }
  std::vector<int> all(static_cast<std::size_t>(workers()));
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(coordinator_->worker_indices(), all);
  EXPECT_EQ(coordinator_->run_on_every_worker<&my_index>(), all);
  expect_error(
      Code::out_of_range,
      "there are workers 0 to " + std::to_string(workers() - 1) + ", not " + std::to_string(workers()),
      [&] { coordinator_->schedule_on<&my_index>(workers()); });
  // Its error is not an error of the job.
  const auto failed = coordinator_->schedule_on<&refuse>(0, std::string("not here"));
  expect_error(Code::invalid_argument, "not here", [&] { failed.fetch(); });
  EXPECT_NO_THROW(coordinator_->join());
}

TEST_P(CoordinatorTest, JoinDoesNotWaitForAFunctionForOneWorker) {
  const auto blocked = block_all_workers();
  const auto mine = coordinator_->schedule_on<&my_index>(0);
  EXPECT_FALSE(mine.ready());
  gate = true;
  coordinator_->join();
  EXPECT_EQ(mine.fetch(), 0);
}

// A5.2, B15-B16: same.
TEST_P(CoordinatorTest, NestedResultsKeepTheirShape) {
  EXPECT_EQ(coordinator_->schedule<&nest>(1).fetch(), (Nest{2, {3, 4}, {5}, {{"v", 1}}}));
}

TEST_P(CoordinatorTest, LargeArgumentsAndResultsArriveUnchanged) {
  std::vector<std::uint8_t> bytes(3 << 20);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 >> 3);
  const auto result = coordinator_->schedule<&reverse>(bytes).fetch();
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), result.rbegin(), result.rend()));
}

// A5.5, B18, B29: same.
TEST_P(CoordinatorTest, JoinWaitsForAllFunctions) {
  const auto v = variable();
  coordinator_->join();
  EXPECT_EQ(v.pull()[0], 0);
  for (int i = 0; i < 5; ++i) coordinator_->schedule<&add_to>(v, 2);
  coordinator_->join();
  EXPECT_EQ(v.pull()[0], 10);
  for (int i = 0; i < 5; ++i) coordinator_->schedule<&add_to>(v, 2);
  for (int i = 0; i < 3; ++i) coordinator_->join();
  EXPECT_EQ(v.pull()[0], 20);
  EXPECT_TRUE(coordinator_->done());
}

// B55: same.
TEST_P(CoordinatorTest, ManyFunctionsRunOnceEach) {
  const auto v = variable();
  std::vector<RemoteValue<double>> values;
  for (int i = 0; i < 300; ++i) {
    coordinator_->schedule<&add_to>(v, 1);
    values.push_back(coordinator_->schedule<&add>(0.5, i));
  }
  coordinator_->join();
  EXPECT_EQ(v.pull()[0], 300);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)].fetch(), i + 0.5);
}

TEST_P(CoordinatorTest, WorkersKnowVariablesThatAreCreatedLater) {
  const auto first = variable("first");
  coordinator_->schedule<&add_to>(first, 1);
  coordinator_->join();
  const auto second = variable("second");
  coordinator_->schedule<&add_to>(second, 3);
  coordinator_->join();
  EXPECT_EQ(coordinator_->schedule<&read>(first).fetch(), 1);
  EXPECT_EQ(coordinator_->schedule<&read>(second).fetch(), 3);
}

std::int64_t value_of(const PerWorkerVariable<std::int64_t>& variable) { return variable.read().values[0]; }

// Another thread that waits for results dispatches functions meanwhile.
TEST_P(CoordinatorTest, WorkersKnowObjectsThatAreCreatedDuringDispatch) {
  constexpr std::int64_t kObjects = 4000;
  const auto scope = strategy_->scope();
  std::vector<RemoteValue<std::int64_t>> values;
  values.reserve(kObjects);
  std::atomic<std::size_t> scheduled{0};
  std::jthread fetcher([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const std::size_t last = scheduled;
      if (last == 0) continue;
      try {
        (void)values[last - 1].fetch();
      } catch (const Error&) {
        return;  // join throws it
      }
    }
  });
  for (std::int64_t i = 0; i < kObjects; ++i) {
    const PerWorkerVariable<std::int64_t> variable("v" + std::to_string(i), Shape{1},
                                                   initializers::constant(static_cast<double>(i)));
    values.push_back(coordinator_->schedule<&value_of>(variable));
    ++scheduled;
  }
  EXPECT_NO_THROW(coordinator_->join());
  fetcher.request_stop();
  fetcher.join();
  for (std::int64_t i = 0; i < kObjects; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)].fetch(), i);
}

/// Called by the second conversion of a Converted to a parameter's type, while a batch is filled.
std::function<void()> at_second_conversion;
std::atomic<int> conversions{0};
struct Converted {
  std::int64_t value = 0;
  operator std::int64_t() const {  // NOLINT(google-explicit-constructor)
    if (++conversions == 2) at_second_conversion();
    return value;
  }
};
Converted converted() { return {1}; }
std::int64_t same(std::int64_t value) { return value; }

TEST_P(CoordinatorTest, WorkerKnowsAnObjectThatIsCreatedWhileItsBatchIsFilled) {
  // Short functions are sent in batches.
  const auto first = [&] {
    const auto scope = strategy_->scope();
    return PerWorkerVariable<std::int64_t>("first", Shape{1}, initializers::constant(1));
  }();
  for (int i = 0; i < 500; ++i) {
    coordinator_->schedule<&same>(i);
    coordinator_->schedule<&value_of>(first);
  }
  coordinator_->join();
  conversions = 0;
  std::optional<RemoteValue<std::int64_t>> value;
  at_second_conversion = [&] {
    const auto scope = strategy_->scope();
    const PerWorkerVariable<std::int64_t> second("second", Shape{1}, initializers::constant(2));
    value = coordinator_->schedule<&value_of>(second);
  };
  // Both become ready together with their argument.
  const auto argument = coordinator_->schedule<&converted>();
  const auto a = coordinator_->schedule<&same>(argument);
  const auto b = coordinator_->schedule<&same>(argument);
  EXPECT_EQ(a.fetch() + b.fetch(), 2);
  EXPECT_EQ(value.value().fetch(), 2);
  EXPECT_NO_THROW(coordinator_->join());
}

TEST_P(CoordinatorTest, WorkersAddToOneCounter) {
  const auto scope = strategy_->scope();
  const Counter counter("steps");
  std::vector<RemoteValue<std::int64_t>> values;
  for (int i = 0; i < 50; ++i) values.push_back(coordinator_->schedule<&count>(counter));
  std::set<std::int64_t> seen;
  for (const auto& value : values) seen.insert(value.fetch());
  EXPECT_EQ(seen.size(), 50U);
  EXPECT_EQ(counter.value(), 50);
}

TEST_P(CoordinatorTest, WorkersRunConcurrentlyAndKnowTheirIndex) {
  std::vector<RemoteValue<int>> values;
  for (int i = 0; i < workers(); ++i) {
    values.push_back(coordinator_->schedule<&index_when_all_are_here>(workers()));
  }
  std::set<int> indices;
  for (const auto& value : values) indices.insert(value.fetch());
  EXPECT_EQ(static_cast<int>(indices.size()), workers());
  EXPECT_EQ(*indices.begin(), 0);
  EXPECT_EQ(*indices.rbegin(), workers() - 1);
  expect_error_naming(Code::failed_precondition, {"current_worker_index()"},
                      [] { (void)current_worker_index(); });
}

// A5.9, B22: same.
TEST_P(CoordinatorTest, EachWorkerCreatesItsResourceOnce) {
  const auto tally = coordinator_->create_per_worker_resource<&make_tally>(100);
  EXPECT_EQ(made, 0);  // created at the first use
  std::vector<RemoteValue<std::pair<int, int>>> values;
  for (int i = 0; i < 30; ++i) values.push_back(coordinator_->schedule<&use_tally>(tally));
  coordinator_->join();
  std::map<int, std::set<int>> calls;
  for (const auto& value : values) {
    const auto [worker, call] = value.fetch();
    EXPECT_TRUE(calls[worker].insert(call).second);
  }
  std::size_t total = 0;
  for (const auto& [worker, seen] : calls) {
    EXPECT_EQ(*seen.begin(), 101);
    EXPECT_EQ(*seen.rbegin(), 100 + static_cast<int>(seen.size()));
    total += seen.size();
  }
  EXPECT_EQ(total, 30U);
  EXPECT_EQ(made, static_cast<int>(calls.size()));
}

// A5.10, B13: same.
TEST_P(CoordinatorTest, DatasetIsShardedByTheWorkersIndex) {
  const auto numbers = coordinator_->create_per_worker_dataset<&every_nth>(10, workers());
  std::vector<RemoteValue<std::pair<int, int>>> values;
  for (int i = 0; i < workers(); ++i) {
    values.push_back(coordinator_->schedule<&sum_when_all_are_here>(numbers, workers()));
  }
  std::map<int, int> sums;
  for (const auto& value : values) sums.insert(value.fetch());
  for (int worker = 0; worker < workers(); ++worker) {
    int expected = 0;
    for (int i = worker; i < 10; i += workers()) expected += i;
    EXPECT_EQ(sums[worker], expected);
  }
}

TEST_P(CoordinatorTest, EndOfADatasetIsOutOfRangeAtJoin) {
  const auto dataset = coordinator_->create_per_worker_dataset<&batches>(4);
  EXPECT_EQ(coordinator_->schedule<&next_batch>(dataset).fetch(), (std::vector<int>{1, 2, 3, 4}));
  coordinator_->join();
  for (int i = 0; i < 3 * workers(); ++i) {
    try {
      coordinator_->schedule<&next_batch>(dataset);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::out_of_range);
      return;  // schedule may throw the error first
    }
  }
  expect_error_naming(Code::out_of_range, {}, [&] { coordinator_->join(); });
}

// B27: same.
TEST_P(CoordinatorTest, FunctionTakesSeveralDatasets) {
  const auto a = coordinator_->create_per_worker_dataset<&constant>(2);
  const auto b = coordinator_->create_per_worker_dataset<&constant>(5);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(coordinator_->schedule<&add_firsts>(a, b).fetch(), 7);
}

// A5.9, A5.12, B37, B38: same.
TEST_P(CoordinatorTest, ErrorOfADatasetFailsTheFunctionThatUsesIt) {
  const auto broken = coordinator_->create_per_worker_dataset<&broken_dataset>(0);
  const auto good = coordinator_->create_per_worker_dataset<&constant>(1);
  EXPECT_EQ(coordinator_->schedule<&first_of>(good).fetch(), 1);
  coordinator_->join();  // no function used the invalid one
  EXPECT_EQ(made, 0);
  const auto value = coordinator_->schedule<&first_of>(broken);
  expect_error(Code::not_found, "no such file", [&] { coordinator_->join(); });
  expect_error(Code::not_found, "no such file", [&] { (void)value.fetch(); });
  EXPECT_EQ(coordinator_->schedule<&first_of>(good).fetch(), 1);
}

// B30, B32, B33, B35, B36: same.
TEST_P(CoordinatorTest, NextCallThrowsAnErrorOnce) {
  const auto failed = coordinator_->schedule<&refuse>("bad numbers");
  expect_error(Code::invalid_argument, "bad numbers", [&] { coordinator_->join(); });
  coordinator_->join();
  expect_error(Code::invalid_argument, "bad numbers", [&] { failed.fetch(); });

  const auto again = coordinator_->schedule<&refuse>("again");
  EXPECT_TRUE(poll_until([&] { return again.ready(); }));
  expect_error(Code::invalid_argument, "again", [&] { coordinator_->schedule<&add>(1, 1); });
  EXPECT_EQ(coordinator_->schedule<&add>(1, 1).fetch(), 2);

  const auto third = coordinator_->schedule<&refuse>("third");
  EXPECT_TRUE(poll_until([&] { return third.ready(); }));
  expect_error(Code::invalid_argument, "third", [&] { (void)coordinator_->done(); });
  EXPECT_TRUE(coordinator_->done());
}

// B34: same.
TEST_P(CoordinatorTest, ThrowsOneOfManyErrors) {
  int raised = 0;
  for (int i = 0; i < 20; ++i) {
    try {
      coordinator_->schedule<&refuse>("one of many");
    } catch (const Error&) {
      ++raised;
    }
  }
  try {
    coordinator_->join();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "one of many");
    ++raised;
  }
  EXPECT_GE(raised, 1);
  coordinator_->join();
}

TEST_P(CoordinatorTest, OtherExceptionsAreUnknownErrors) {
  coordinator_->schedule<&throw_plain>();
  expect_error(Code::unknown, "plain words", [&] { coordinator_->join(); });
  coordinator_->schedule<&throw_number>();
  expect_error_naming(Code::unknown, {"std::exception"}, [&] { coordinator_->join(); });
}

// A5.11, B39, B40: same.
TEST_P(CoordinatorTest, ErrorCancelsQueuedFunctionsAndAwaitsRunningOnes) {
  const auto tally = coordinator_->create_per_worker_resource<&make_tally>(0);
  const auto before = coordinator_->schedule<&use_tally>(tally).fetch();
  coordinator_->join();

  const auto running = coordinator_->schedule<&wait_at_the_gate>(42);
  ASSERT_TRUE(poll_until([] { return arrived == 1; }));
  // Runs beside the function at the gate, or after it if there is only one worker.
  const auto failing = coordinator_->schedule<&refuse>("failed");
  if (workers() == 1) gate = true;
  ASSERT_TRUE(poll_until([&] { return failing.ready(); }));
  const std::jthread opener([joining = gettid()] {
    EXPECT_TRUE(wait_until_asleep(joining));
    gate = true;
  });
  expect_error(Code::invalid_argument, "failed", [&] { coordinator_->join(); });
  EXPECT_EQ(running.fetch(), 42);
  // Resources are unchanged.
  bool same_worker = false;
  for (int round = 0; round < 100 && !same_worker; ++round) {
    // More functions than one worker takes, so the worker that got the earlier request receives some, too.
    std::vector<RemoteValue<std::pair<int, int>>> uses;
    for (int i = 0; i < 4 * workers(); ++i) uses.push_back(coordinator_->schedule<&use_tally>(tally));
    int least = 0;
    for (const auto& use : uses) {
      const auto [worker, calls] = use.fetch();
      if (worker == before.first && (least == 0 || calls < least)) least = calls;
    }
    same_worker = least != 0;
    if (same_worker) {
      EXPECT_EQ(least, before.second + 1);
    }
  }
  EXPECT_TRUE(same_worker);
}

// A5.11, B39: same.
TEST_P(CoordinatorTest, ErrorCancelsFunctionsThatWorkersHaveNotStarted) {
  const auto failing = coordinator_->schedule<&fail_when_told>();
  ASSERT_TRUE(poll_until([] { return arrived == 1; }));
  std::vector<RemoteValue<int>> running;
  for (int i = 1; i < workers(); ++i) running.push_back(coordinator_->schedule<&wait_at_the_gate>(i));
  ASSERT_TRUE(poll_until([this] { return arrived == workers(); }));
  const int count = std::stoi(GetParam().queue_limit) > 10 ? 10 : 2;
  std::vector<RemoteValue<void>> behind;
  for (int i = 0; i < count; ++i) behind.push_back(coordinator_->schedule<&count_run>());
  const int inflight = GetParam().inflight == "1" ? 1 : 2;
  const auto with_workers = static_cast<std::uint64_t>(std::min(workers() * inflight, workers() + count));
  ASSERT_TRUE(poll_until([&] { return coordinator_->statistics().running == with_workers; }));

  may_fail = true;
  ASSERT_TRUE(poll_until([&] { return failing.ready(); }));
  // Only functions that have started are awaited.
  ASSERT_TRUE(poll_until([&] { return coordinator_->statistics().running == running.size(); }));
  gate = true;
  expect_error(Code::invalid_argument, "told to fail", [&] { coordinator_->join(); });
  for (std::size_t i = 0; i < running.size(); ++i) EXPECT_EQ(running[i].fetch(), static_cast<int>(i) + 1);
  for (const auto& value : behind) (void)error_of(Code::cancelled, [&] { value.fetch(); });
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(coordinator_->statistics().cancelled, behind.size());

  for (int i = 0; i < 10; ++i) coordinator_->schedule<&count_run>();
  coordinator_->join();
  EXPECT_EQ(ran, 10);
}

// A5.11, B39: same.
TEST_P(CoordinatorTest, ErrorOfAFunctionCancelsARunningFunction) {
  if (workers() == 1) GTEST_SKIP() << "functions run sequentially";
  for (int round = 1; round <= 3; ++round) {
    arrived = 0;
    const auto running = coordinator_->schedule<&run_until_cancelled>();
    fail_beside_a_running_function();
    (void)error_of(Code::cancelled, [&] { running.fetch(); });
    EXPECT_EQ(called_back, round);
    const auto values = coordinator_->run_on_every_worker<&my_index>();
    EXPECT_EQ(static_cast<int>(values.size()), workers());
  }
}

// A5.11, B39: same.
TEST_P(CoordinatorTest, EveryCallInACancelledFunctionThrows) {
  if (workers() == 1) GTEST_SKIP() << "functions run sequentially";
  const auto v = variable();
  const auto counter = [&] {
    const auto scope = strategy_->scope();
    return Counter("counter");
  }();
  const auto numbers = coordinator_->create_per_worker_dataset<&constant>(7);
  const auto running = coordinator_->schedule<&call_everything>(v, counter, numbers);
  fail_beside_a_running_function();
  EXPECT_EQ(refused, 12);
  (void)error_of(Code::cancelled, [&] { running.fetch(); });
  EXPECT_TRUE(poll_until([&] { return v.pull()[0] == 1; })) << "earlier pushes are applied";
  EXPECT_EQ(counter.value(), 0);
  // The worker's rings and results are unaffected.
  for (int i = 0; i < 10 * workers(); ++i) coordinator_->schedule<&add_to>(v, 1);
  coordinator_->join();
  EXPECT_EQ(v.pull()[0], 1 + 10 * static_cast<float>(workers()));
  EXPECT_EQ(coordinator_->schedule<&first_of>(numbers).fetch(), 7);
}

TEST_P(CoordinatorTest, CancellationEndsAWaitForOtherWorkers) {
  if (workers() == 1) GTEST_SKIP() << "functions run sequentially";
  const auto group = [&] {
    const auto scope = strategy_->scope();
    return UpdateGroup("group", Synchronous{});
  }();
  const auto running = coordinator_->schedule<&wait_for_other_workers>(group);
  fail_beside_a_running_function();
  (void)error_of(Code::cancelled, [&] { running.fetch(); });
}

TEST_P(CoordinatorTest, CancellationEndsAWaitForAnElement) {
  if (workers() == 1) GTEST_SKIP() << "functions run sequentially";
  const auto numbers = coordinator_->create_per_worker_dataset<&behind_the_gate>();
  const auto running = coordinator_->schedule<&next_behind_the_gate>(numbers);
  fail_beside_a_running_function();
  (void)error_of(Code::cancelled, [&] { running.fetch(); });
  gate = true;
  // The element was not consumed.
  for (int worker = 0; worker < workers(); ++worker) {
    EXPECT_EQ(coordinator_->schedule_on<&next_behind_the_gate>(worker, numbers).fetch(), 1);
  }
}

// A5.4: same.
TEST_P(CoordinatorTest, ErrorDoesNotAffectFunctionsForOneWorker) {
  const auto failing = coordinator_->schedule<&fail_when_told>();
  ASSERT_TRUE(poll_until([] { return arrived == 1; }));
  std::vector<RemoteValue<void>> alone;
  for (int worker = 0; worker < workers(); ++worker) {
    alone.push_back(coordinator_->schedule_on<&count_run>(worker));
  }
  may_fail = true;
  expect_error(Code::invalid_argument, "told to fail", [&] { coordinator_->join(); });
  for (const auto& value : alone) EXPECT_NO_THROW(value.fetch());
  EXPECT_EQ(ran, workers());
}

// A5.5: better: join takes a timeout.
TEST_P(CoordinatorTest, JoinReturnsFalseAtItsTimeout) {
  const auto running = coordinator_->schedule<&wait_at_the_gate>(1);
  EXPECT_FALSE(coordinator_->join(milliseconds(20)));
  EXPECT_FALSE(coordinator_->done());
  EXPECT_FALSE(running.ready());
  gate = true;
  EXPECT_TRUE(coordinator_->join(std::chrono::seconds(20)));
  EXPECT_TRUE(coordinator_->done());
  EXPECT_EQ(running.fetch(), 1);
}

TEST_P(CoordinatorTest, FunctionsRunThoughNoThreadWaits) {
  ran = 0;
  for (int expected = 10; expected <= 500; expected += 10) {
    for (int i = 0; i < 10; ++i) coordinator_->schedule<&count_run>();
    ASSERT_TRUE(poll_until([expected] { return ran == expected; })) << ran;
  }
}

// A5.3: same.
TEST_P(CoordinatorTest, ScheduleBlocksWhileTheQueueIsFull) {
  if (std::stoi(GetParam().queue_limit) > 10) GTEST_SKIP() << "the queue of this run is too large to fill";
  const auto blocked = block_all_workers();
  std::atomic<bool> through{false};
  const std::jthread opener([&, scheduling = gettid()] {
    EXPECT_TRUE(wait_until_asleep(scheduling));
    EXPECT_FALSE(through);
    gate = true;
  });
  for (int i = 0; i < std::stoi(GetParam().queue_limit) + 1; ++i) coordinator_->schedule<&add>(1, i);
  through = true;
  coordinator_->join();
  for (std::size_t i = 0; i < blocked.size(); ++i) EXPECT_EQ(blocked[i].fetch(), static_cast<int>(i));
}

// B78: same.
TEST_P(CoordinatorTest, DestructorOfTheCoordinatorCancelsPendingResults) {
  const auto blocked = block_all_workers();
  const auto never = coordinator_->schedule<&add>(1, 1);
  const std::jthread opener([ending = gettid()] {
    EXPECT_TRUE(wait_until_asleep(ending));
    gate = true;
  });
  coordinator_.reset();
  try {
    (void)never.fetch();  // it may have just run
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::cancelled);
  }
  for (const auto& value : blocked) EXPECT_TRUE(value.ready());
}

std::string shape_name(const testing::TestParamInfo<ClusterShape>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Shapes, CoordinatorTest,
    testing::Values(ClusterShape{.name = "three_workers"},
                    ClusterShape{.name = "two_at_a_time", .inflight = "2"},
                    ClusterShape{.name = "short_queue", .queue_limit = "2", .inflight = "1"},
                    ClusterShape{.name = "one_worker", .workers = 1},
                    ClusterShape{.name = "embedded", .embedded = true, .workers = 2},
                    ClusterShape{.name = "embedded_one", .embedded = true, .workers = 1, .queue_limit = "2"}),
    shape_name);

}  // namespace
}  // namespace capstan

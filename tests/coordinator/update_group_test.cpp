// update_group_test.cpp -- bounded staleness, and synchronous training that equals one process.
// Tests: src/client/step_clock.cpp
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "capstan/coordinator.hpp"
#include "capstan/dynamic_table.hpp"
#include "conformance/cluster_fixture.hpp"
#include "support/poll.hpp"

namespace capstan {
namespace {

using std::chrono::milliseconds;

constexpr int kSteps = 12;
constexpr std::int64_t kGroupRows = 7, kGroupWidth = 3;

/// Returns the gradient of a worker in a step for the values `w` that it has read; subject to rounding.
std::vector<double> gradient_of(int worker, int step, const std::vector<double>& w) {
  std::vector<double> gradient(w.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    gradient[i] = (w[i] - 0.1 * (worker + 1)) / 3.0 + 1.0 / (1.0 + static_cast<double>(i) + step);
  }
  return gradient;
}

void train_dense(const UpdateGroup& group, const Variable<double>& w) {
  for (int step = 0; step < kSteps; ++step) {
    w.push_dense(gradient_of(current_worker_index(), step, w.pull()));
    EXPECT_EQ(group.end_step(), step + 1);
  }
  group.leave();
}

/// Trains in one process with the mean of all workers' gradients, added in the order of the workers.
void train_alone(const Variable<double>& w, int workers) {
  for (int step = 0; step < kSteps; ++step) {
    const auto values = w.pull();
    std::vector<double> sum(values.size());
    for (int worker = 0; worker < workers; ++worker) {
      const auto gradient = gradient_of(worker, step, values);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
    }
    for (double& g : sum) g /= workers;
    w.push_dense(sum);
    w.flush();
  }
}

/// A cluster of three workers and a parameterized number of ps.
class UpdateGroups : public testing::TestWithParam<int> {
 protected:
  static constexpr int kWorkers = 3;
  RankThreads ranks_{{.ranks = GetParam() + kWorkers + 1,
                      .flags = {{"ps", std::to_string(GetParam())}, {"wait-timeout", "20s"}}}};
  ParameterServerStrategy strategy_{ranks_.cluster(),
                                    {.variable_partitioner = FixedShardsPartitioner{GetParam()}}};
  ParameterServerStrategy::Scope scope_{&strategy_.implementation()};
};

TEST_P(UpdateGroups, SynchronousTrainingEqualsOneProcessBitwise) {
  ClusterCoordinator coordinator(strategy_);
  for (const Optimizer& optimizer : {Optimizer(optimizers::SGD{.learning_rate = 0.3}),
                                     Optimizer(optimizers::Adam{.learning_rate = 0.05})}) {
    const std::string name = to_string(optimizer.kind) == "sgd" ? "sgd" : "adam";
    const UpdateGroup group(name, Synchronous{});
    const auto initial = initializers::normal(0, 1, 5);
    const Variable<double> w(name, Shape{kGroupRows, kGroupWidth}, initial,
                             {.optimizer = optimizer, .group = group});
    for (int worker = 0; worker < kWorkers; ++worker) coordinator.schedule<&train_dense>(group, w);
    coordinator.join();
    const Variable<double> alone(name + " alone", Shape{kGroupRows, kGroupWidth}, initial,
                                 {.optimizer = optimizer});
    train_alone(alone, kWorkers);
    EXPECT_EQ(w.pull(), alone.pull());
    EXPECT_NE(w.pull(), std::vector<double>(kGroupRows * kGroupWidth));
  }
}

std::atomic<int> held_back{0};

/// Worker k pushes rows k and k + 1, and row 6 twice; its pushes must not be visible before the end of the
/// step.
void push_rows(const UpdateGroup& group, const Variable<float>& w) {
  const std::int64_t k = current_worker_index();
  const auto before = w.pull();
  w.push(IndexedSlices<float>{{6, k, k + 1, 6}, {1, 10, 100, 1}});
  w.flush();
  if (w.pull() == before) ++held_back;
  group.end_step();
  group.leave();
}

TEST_P(UpdateGroups, SumsRowsOverWorkersAndAppliesThemOnce) {
  const UpdateGroup sum("sum", Synchronous{.average = false});
  const UpdateGroup mean("mean", Synchronous{});
  const auto minus = Optimizer(optimizers::SGD{.learning_rate = -1});
  const Variable<float> summed("summed", Shape{8}, {}, {.optimizer = minus, .group = sum});
  const Variable<float> averaged("averaged", Shape{8}, {}, {.optimizer = minus, .group = mean});
  const auto adagrad = optimizers::Adagrad{.learning_rate = 1, .initial_accumulator = 0, .epsilon = 0};
  const Variable<float> once("once", Shape{8}, {}, {.optimizer = adagrad, .group = sum});
  held_back = 0;
  ClusterCoordinator coordinator(strategy_);
  const auto run = [&](const UpdateGroup& group, const Variable<float>& w) {
    for (int worker = 0; worker < kWorkers; ++worker) coordinator.schedule<&push_rows>(group, w);
    coordinator.join();
  };
  run(sum, summed);
  EXPECT_EQ(summed.pull(), (std::vector<float>{10, 110, 110, 100, 0, 0, 6, 0}));
  run(mean, averaged);
  EXPECT_EQ(averaged.pull(), (std::vector<float>{10.F / 3, 110.F / 3, 110.F / 3, 100.F / 3, 0, 0, 2, 0}));
  sum.restart();
  run(sum, once);  // for any sum g, the first step is -g / |g|; two steps would be larger
  EXPECT_EQ(once.pull(), (std::vector<float>{-1, -1, -1, -1, 0, 0, -1, 0}));
  EXPECT_EQ(held_back, 3 * kWorkers);
}

/// Worker k trains the keys k, k + 1 and 1000.
void train_keys(const UpdateGroup& group, const DynamicTable<double>& table) {
  const std::int64_t k = current_worker_index();
  const std::vector<std::int64_t> keys = {k, k + 1, 1000};
  for (int step = 0; step < kSteps; ++step) {
    const auto before = table.lookup(keys).values;
    table.push(IndexedSlices<double>{keys, gradient_of(static_cast<int>(k), step, before)});
    table.flush();
    if (table.lookup(keys).values == before) ++held_back;
    group.end_step();
  }
  group.leave();
}

TEST_P(UpdateGroups, SynchronousTrainingOfATableEqualsThatOfAVariable) {
  constexpr std::int64_t kWidth = 2;
  const auto adam = optimizers::Adam{.learning_rate = 0.05};
  const UpdateGroup group("tables", Synchronous{.average = false});
  const DynamicTable<double> table("table", kWidth, {}, {.optimizer = adam, .group = group});
  const Variable<double> alone("alone", Shape{5, kWidth}, {}, {.optimizer = adam});
  held_back = 0;
  ClusterCoordinator coordinator(strategy_);
  for (int worker = 0; worker < kWorkers; ++worker) coordinator.schedule<&train_keys>(group, table);
  coordinator.join();
  for (int step = 0; step < kSteps; ++step) {
    const auto before = alone.pull();
    std::vector<double> sum(before.size());
    for (int worker = 0; worker < kWorkers; ++worker) {
      const std::array<std::int64_t, 3> rows = {worker, worker + 1, 4};
      std::vector<double> read;
      for (const std::int64_t row : rows)
        read.insert(read.end(), before.begin() + row * kWidth, before.begin() + (row + 1) * kWidth);
      const auto gradient = gradient_of(worker, step, read);
      for (std::size_t i = 0; i < gradient.size(); ++i)
        sum[static_cast<std::size_t>(rows[i / kWidth] * kWidth) + i % kWidth] += gradient[i];
    }
    alone.push_dense(sum);
    alone.flush();
  }
  EXPECT_EQ(table.lookup(std::vector<std::int64_t>{0, 1, 2, 3, 1000}).values, alone.pull());
  EXPECT_EQ(table.size(), 5U);
  EXPECT_EQ(held_back, kWorkers * kSteps);
}

struct Race {
  std::array<std::atomic<std::int64_t>, 3> begun{};
  std::atomic<std::int64_t> widest{0};

  void note(std::int64_t lead) {
    for (std::int64_t seen = widest; lead > seen && !widest.compare_exchange_weak(seen, lead);) {
    }
  }
};
Race race;

/// Worker 0 is slow: it ends a step when another worker is `lead` steps ahead, or has ended. Records the
/// largest distance from the slowest worker at which a worker starts a step.
void run_race(const UpdateGroup& group, std::int64_t steps, std::int64_t lead) {
  const auto self = static_cast<std::size_t>(current_worker_index());
  for (std::int64_t step = 0; step < steps; ++step) {
    race.begun[self] = step;
    std::int64_t slowest = steps;
    for (const auto& other : race.begun) slowest = std::min<std::int64_t>(slowest, other);
    race.note(step - slowest);
    const auto fastest = [] { return std::max<std::int64_t>(race.begun[1], race.begun[2]); };
    if (self == 0) {
      poll_until([&] { return fastest() >= std::min(step + lead, steps); });
      race.note(fastest() - step);
    }
    group.end_step();
  }
  race.begun[self] = steps;
  group.leave();
}

TEST_P(UpdateGroups, NoWorkerExceedsTheBound) {
  constexpr std::int64_t kRaceSteps = 25;
  ClusterCoordinator coordinator(strategy_);
  const auto run = [&](const UpdateGroup& group, std::int64_t lead) {
    for (auto& begun : race.begun) begun = 0;
    race.widest = 0;
    for (int worker = 0; worker < kWorkers; ++worker)
      coordinator.schedule<&run_race>(group, kRaceSteps, lead);
    coordinator.join();
  };
  for (const std::int64_t bound : {0, 1, 3}) {
    run(UpdateGroup("bound " + std::to_string(bound), StaleSynchronous{bound}), bound);
    // A worker that starts step s has ended s steps, and the slowest has ended at least s - bound; it has
    // started its next step, or is about to.
    EXPECT_LE(race.widest, bound + 1);
    EXPECT_GE(race.widest, bound) << "the other workers were held back too early";
  }
  run(UpdateGroup("free", Asynchronous{}), kRaceSteps);
  EXPECT_EQ(race.widest, kRaceSteps) << "an asynchronous group does not wait";
}

std::atomic<bool> slow_has_begun{false};
std::atomic<int> others_done{0};

void wait_until(const auto& happened) {
  if (!poll_until(happened)) throw Error(Code::deadline_exceeded, "another worker has not reached this step");
}

/// All workers push 1 in each step. Worker 2 ends its first step with worker 0, and its second after the
/// others have ended all of theirs; worker 1 starts with the second step.
std::int64_t run_with_a_straggler(const UpdateGroup& group, const Variable<float>& w) {
  const int self = current_worker_index();
  std::int64_t steps = 0;
  if (self == 1) wait_until([] { return slow_has_begun.load(); });
  for (int i = self == 1 ? 1 : 0; i < (self == 2 ? 2 : kSteps); ++i) {
    if (self == 2 && i == 1) wait_until([] { return others_done == 2; });
    w.push(IndexedSlices<float>{{0}, {1}});
    steps = group.end_step();
    if (self == 2) slow_has_begun = true;
  }
  if (self != 2) ++others_done;
  return steps;
}

TEST_P(UpdateGroups, DropsTheStepOfABackupWorkerWithoutWaiting) {
  slow_has_begun = false;
  others_done = 0;
  const UpdateGroup group("backup", Synchronous{.average = false, .backup_workers = 1});
  const Variable<float> w("w", Shape{4}, {},
                          {.optimizer = optimizers::SGD{.learning_rate = -1}, .group = group});
  ClusterCoordinator coordinator(strategy_);
  std::vector<RemoteValue<std::int64_t>> steps;
  for (int worker = 0; worker < kWorkers; ++worker) {
    steps.push_back(coordinator.schedule<&run_with_a_straggler>(group, w));
  }
  coordinator.join();
  EXPECT_EQ(w.pull()[0], 2 * kSteps);  // pushes of two workers in each step; the late one is dropped
  for (const auto& step : steps)
    EXPECT_EQ(step.fetch(), kSteps);  // the late worker continues at the step of the others
}

void end_one_step(const UpdateGroup& group) { group.end_step(); }

TEST(UpdateGroup, NamesMissingWorkers) {
  const RankThreads ranks({.ranks = 4, .flags = {{"ps", "1"}, {"wait-timeout", "3s"}}});
  ParameterServerStrategy strategy(ranks.cluster());
  const auto scope = strategy.scope();
  const UpdateGroup group("lonely", Synchronous{});
  ClusterCoordinator coordinator(strategy);
  coordinator.schedule<&end_one_step>(group);
  try {
    coordinator.join();
    ADD_FAILURE() << "end_step() did not wait";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::deadline_exceeded);
    const std::string text = error.what();
    EXPECT_EQ(text.find("waited 3000 ms in update group \"lonely\", after step 1, for worker "), 0U) << text;
    EXPECT_NE(text.find(" 0 steps"), std::string::npos) << text;
  }
}

TEST(UpdateGroup, RejectsInvalidOptions) {
  const RankThreads ranks({.ranks = 4, .flags = {{"ps", "1"}}});
  ParameterServerStrategy strategy(ranks.cluster());
  const auto scope = strategy.scope();
  expect_error_naming(Code::invalid_argument, {"\"g\"", "-1"},
                      [] { UpdateGroup("g", StaleSynchronous{-1}); });
  expect_error_naming(Code::invalid_argument, {"\"g\"", "2 backup workers", "0 to 1"},
                      [] { UpdateGroup("g", Synchronous{.average = true, .backup_workers = 2}); });
  const UpdateGroup group("g", Asynchronous{});
  expect_error_naming(Code::already_exists, {"\"g\""}, [] { UpdateGroup("g", Asynchronous{}); });
  expect_error(
      Code::failed_precondition,
      "end_step of an update group is for functions that run on a worker; this is coordinator 0 (rank 0 on " +
          cluster::host_name() + ")",
      [&] { (void)group.end_step(); });
}

void push_rows_to_four(const UpdateGroup& group, const Variable<float>& w) {
  w.push_dense(std::vector<float>(4, 1));
  group.end_step();
  group.leave();
}

TEST_P(UpdateGroups, AppliesPushesOfTheCoordinatorAtOnce) {
  const UpdateGroup group("workers", Synchronous{});
  const Variable<float> w("w", Shape{4}, {},
                          {.optimizer = optimizers::SGD{.learning_rate = -1}, .group = group});
  w.push_dense(std::vector<float>{1, 2, 3, 4});
  w.flush();
  EXPECT_EQ(w.pull(), (std::vector<float>{1, 2, 3, 4}));
  ClusterCoordinator coordinator(strategy_);  // workers do not wait for its pushes
  for (int worker = 0; worker < kWorkers; ++worker) coordinator.schedule<&push_rows_to_four>(group, w);
  coordinator.join();
  EXPECT_EQ(w.pull(), (std::vector<float>{2, 3, 4, 5}));
}

INSTANTIATE_TEST_SUITE_P(Clusters, UpdateGroups, testing::Values(1, 2, 3), ps_name);

}  // namespace
}  // namespace capstan

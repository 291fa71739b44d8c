// input_test.cpp -- datasets of workers and replicas: rebatching, sharding, and iterators of every
// generation.
#include "capstan/input.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <set>

#include "capstan/coordinator.hpp"
#include "support/expect_error.hpp"
#include "support/poll.hpp"
#include "support/rank_threads.hpp"
#include "support/read_all.hpp"

namespace capstan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A4.12: same.
TEST(Rebatch, BatchSizesOfAllWorkersAddUp) {
  EXPECT_EQ(batch_sizes_for_worker(7, {.workers = 2, .worker = 0, .replicas = 2}), (Numbers{2, 2, 2, 1}));
  EXPECT_EQ(batch_sizes_for_worker(7, {.workers = 2, .worker = 1, .replicas = 2}), (Numbers{2, 1, 2, 2}));
  for (const std::int64_t global : {1, 2, 5, 8, 23, 64}) {
    for (const std::int64_t workers : {1, 2, 3, 5}) {
      for (const std::int64_t replicas : {1, 2, 4}) {
        const std::int64_t count = workers * replicas;
        Numbers steps(static_cast<std::size_t>(workers), 0);
        for (std::int64_t worker = 0; worker < workers; ++worker) {
          const Numbers sizes = batch_sizes_for_worker(global, {workers, worker, replicas});
          ASSERT_EQ(static_cast<std::int64_t>(sizes.size()), count);
          EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), global);
          for (std::size_t i = 0; i < sizes.size(); ++i) {
            EXPECT_TRUE(sizes[i] == global / count || sizes[i] == global / count + 1);
            steps[i / static_cast<std::size_t>(replicas)] += sizes[i];
          }
        }
        EXPECT_THAT(steps, ::testing::Each(global));
      }
    }
  }
  expect_error_naming(Code::invalid_argument, {"batch size", "0"}, [] { batch_sizes_for_worker(0, {}); });
  expect_error_naming(Code::invalid_argument, {"InputPlacement::worker", "3", "0 to 2"}, [] {
    batch_sizes_for_worker(1, {3, 3, 1});
  });
}

// A4.12: same.
TEST(Rebatch, RoundsUpBatchesOfUnknownSize) {
  const auto mapped = Data::range(8).batch(4).map([](Numbers batch) { return batch; });
  EXPECT_EQ(all(distribute_dataset(mapped, {.replicas = 3})),
            (std::vector<Steps>{{{0, 1}, {2, 3}, {}}, {{4, 5}, {6, 7}, {}}}));
  const auto known = Data::range(8).batch(4);
  EXPECT_EQ(all(distribute_dataset(known, {.replicas = 3})),
            (std::vector<Steps>{{{0, 1}, {2}, {3}}, {{4, 5}, {6}, {7}}}));
}

// A4.7, B48, B266, B267: same.
TEST(Distribute, SplitsGlobalBatchesInOrder) {
  const auto dataset = Data::range(1, 5).batch(4);
  EXPECT_EQ(all(distribute_dataset(dataset, {.replicas = 1})), (std::vector<Steps>{{{1, 2, 3, 4}}}));
  EXPECT_EQ(all(distribute_dataset(dataset, {.replicas = 2})), (std::vector<Steps>{{{1, 2}, {3, 4}}}));
  EXPECT_EQ(all(distribute_dataset(dataset, {.replicas = 4})), (std::vector<Steps>{{{1}, {2}, {3}, {4}}}));
  EXPECT_EQ(all(make_dataset_iterator(Data::range(10), 1)),
            (Steps{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}}));
  EXPECT_EQ(all(make_dataset_iterator(Data::range(10), 2)), (Steps{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}}));
}

// A4.13, B268: same.
TEST(Distribute, LastReplicaMayGetAnEmptyBatch) {
  EXPECT_EQ(all(deal_out(Data::range(9).batch(2), 2)),
            (std::vector<Steps>{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8}, {}}}));
  EXPECT_EQ(all(deal_out(Data::range(9).batch(2, true), 2)),
            (std::vector<Steps>{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}}));
  EXPECT_EQ(all(deal_out(Data::range(7).batch(2, true), 2)), (std::vector<Steps>{{{0, 1}, {2, 3}}}));
  EXPECT_EQ(all(distribute_dataset(Data::range(5).batch(4), {.replicas = 2})),
            (std::vector<Steps>{{{0, 1}, {2, 3}}, {{4}, {}}}));
  EXPECT_EQ(all(distribute_dataset(Data::range(5).batch(4, true), {.replicas = 2})),
            (std::vector<Steps>{{{0, 1}, {2, 3}}}));
  EXPECT_EQ(all(distribute_dataset(Data::range(7).batch(4), {.replicas = 2})),
            (std::vector<Steps>{{{0, 1}, {2, 3}}, {{4, 5}, {6}}}));
  EXPECT_EQ(all(distribute_dataset(Data::range(3).batch(1), {.replicas = 2})),
            (std::vector<Steps>{{{0}, {}}, {{1}, {}}, {{2}, {}}}));
  EXPECT_THAT(all(distribute_dataset(Data::range(0).batch(4), {.replicas = 2})), IsEmpty());
  EXPECT_EQ(all(deal_out(Data::range(5), 2)),
            (Steps{{0, 1}, {2, 3}}));  // there are no batches, so none can be empty
}

// A4.11, B269: same.
TEST(Distribute, TwoWorkersOfTwoReplicasShareTheData) {
  const auto step = [](int worker) {
    return all(deal_out(auto_shard(Data::range(4), AutoShardPolicy::data, 2, worker), 2));
  };
  EXPECT_EQ(step(0), (Steps{{0, 2}}));
  EXPECT_EQ(step(1), (Steps{{1, 3}}));
}

// A4.12: same.
TEST(Distribute, WorkersReadTheirPartOfEveryGlobalBatch) {
  const auto steps = [](std::int64_t worker) {
    return all(distribute_dataset(Data::range(8).batch(4), {.workers = 2, .worker = worker, .replicas = 2}));
  };
  // With sharding by data, each batch has a piece for each replica; the workers take the pieces in turn.
  EXPECT_EQ(steps(0), (std::vector<Steps>{{{0}, {2}}, {{4}, {6}}}));
  EXPECT_EQ(steps(1), (std::vector<Steps>{{{1}, {3}}, {{5}, {7}}}));
  const InputOptions off{.auto_shard_policy = AutoShardPolicy::off};
  const auto unshared = [&](std::int64_t worker) {
    return all(
        distribute_dataset(Data::range(7).batch(7), {.workers = 2, .worker = worker, .replicas = 2}, off));
  };
  EXPECT_EQ(unshared(0), (std::vector<Steps>{{{0, 1}, {2, 3}}, {{4, 5}, {6}}}));
  EXPECT_EQ(unshared(1), (std::vector<Steps>{{{0, 1}, {2}}, {{3, 4}, {5, 6}}}));
}

// B272: same.
TEST(Distribute, SplitsBatchesOfRaggedRows) {
  using Rows = std::vector<Numbers>;
  const auto rows =
      Data::range(20).map([](std::int64_t i) { return Numbers(static_cast<std::size_t>(i % 4), i); });
  const auto sum = [](const std::vector<std::vector<Rows>>& steps) {
    std::int64_t total = 0;
    for (const auto& step : steps) {
      for (const Rows& batch : step) {
        for (const Numbers& row : batch) total += std::accumulate(row.begin(), row.end(), std::int64_t{0});
      }
    }
    return total;
  };
  for (const std::int64_t replicas : {1, 2, 4}) {
    EXPECT_EQ(sum(all(distribute_dataset(rows.batch(8), {.replicas = replicas}))), 310);
    EXPECT_EQ(sum(all(distribute_dataset(rows.batch(8, true), {.replicas = replicas}))), 200);
  }
  const auto first = all(distribute_dataset(rows.batch(8), {.replicas = 2}))[0][0];
  EXPECT_EQ(first, (Rows{{}, {1}, {2, 2}, {3, 3, 3}}));
}

// A4.7, B273: same.
TEST(Distribute, WorkersOfAParameterServerStrategyReadAllData) {
  for (int worker = 0; worker < 3; ++worker) {
    EXPECT_EQ(all(distribute_dataset(Data::range(5).batch(2), {.replicas = 1})),
              (std::vector<Steps>{{{0, 1}}, {{2, 3}}, {{4}}}));
  }
}

// A4.7, B87: same.
TEST(Distribute, RejectsDirectReads) {
  const auto distributed = distribute_dataset(Data::range(4).batch(2), {});
  const auto from_function =
      distribute_datasets_from_function([](const InputContext&) { return Data::range(4).batch(2); }, {});
  for (const auto& dataset : {distributed, from_function}) {
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { dataset.make_iterator(); }),
                testing::HasSubstr("create_per_worker_dataset"));
    EXPECT_THAT(error_of(Code::invalid_argument,
                         [&] {
                           for (const auto& step : dataset) static_cast<void>(step);
                         }),
                testing::HasSubstr("create_per_worker_dataset"));
  }
}

// A4.8, B49, B195, B196: same.
TEST(Distribute, FunctionReceivesItsInputContext) {
  InputContext seen{};
  const auto make = [&seen](const InputContext& context) {
    seen = context;
    return Data::range(1, 5).batch(context.get_per_replica_batch_size(2));
  };
  EXPECT_EQ(all(distribute_datasets_from_function(make, {.num_replicas_in_sync = 2})),
            (std::vector<Steps>{{{1}, {2}}, {{3}, {4}}}));
  EXPECT_EQ(seen.num_input_pipelines, 1);
  EXPECT_EQ(seen.input_pipeline_id, 0);
  EXPECT_EQ(seen.num_replicas_in_sync, 2);
  // Between-graph replication: one pipeline for each worker, including the chief.
  EXPECT_EQ(all(make_input_fn_iterator(
                [&seen](const InputContext& context) {
                  seen = context;
                  return Data::range(6).shard(context.num_input_pipelines, context.input_pipeline_id);
                },
                {.num_input_pipelines = 3, .input_pipeline_id = 1, .num_replicas_in_sync = 2})),
            (Steps{{1, 4}}));
  EXPECT_EQ(seen.num_input_pipelines, 3);
  EXPECT_EQ(seen.input_pipeline_id, 1);
  EXPECT_EQ(all(make_input_fn_iterator([](const InputContext&) { return Data::range(2); }, {})),
            (Steps{{0}, {1}}));
}

// A4.8, A4.14: better: PER_REPLICA creates a pipeline for each replica, which TensorFlow supports for
// MirroredStrategy only.
TEST(Distribute, PipelinesAndReplicasInSyncAreIndependent) {
  // 2 workers with 2 replicas each in one synchronous job, seen from the second worker.
  const InputContext context{.num_input_pipelines = 2, .input_pipeline_id = 1, .num_replicas_in_sync = 4};
  std::vector<InputContext> seen;
  const auto make = [&seen](const InputContext& own) {
    seen.push_back(own);
    return Data::range(16)
        .shard(own.num_input_pipelines, own.input_pipeline_id)
        .batch(own.get_per_replica_batch_size(8));
  };
  EXPECT_EQ(all(distribute_datasets_from_function(make, context, {}, 2)),
            (std::vector<Steps>{{{1, 3}, {5, 7}}, {{9, 11}, {13, 15}}}));
  EXPECT_EQ(all(make_input_fn_iterator(make, context, InputReplicationMode::per_worker, 2)),
            (std::vector<Steps>{{{1, 3}, {5, 7}}, {{9, 11}, {13, 15}}}));
  EXPECT_EQ(all(make_input_fn_iterator(make, context, InputReplicationMode::per_replica, 2)),
            (std::vector<Steps>{{{2, 6}, {3, 7}}, {{10, 14}, {11, 15}}}));
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen[0].num_replicas_in_sync, 4);
  EXPECT_EQ(seen[3].num_input_pipelines, 4);
  EXPECT_EQ(seen[3].input_pipeline_id, 3);
  EXPECT_EQ(seen[3].num_replicas_in_sync, 4);
  error_of(Code::invalid_argument, [&] { make_input_fn_iterator(make, {.input_pipeline_id = 1}); });
  error_of(Code::invalid_argument, [&] { distribute_datasets_from_function(make, context, {}, 0); });
}

// A4.9: same.
TEST(InputContext, DividesTheGlobalBatch) {
  EXPECT_EQ((InputContext{.num_replicas_in_sync = 4}.get_per_replica_batch_size(12)), 3);
  expect_error_naming(Code::invalid_argument, {"10", "num_replicas_in_sync", "4"},
                      [] { (void)InputContext{.num_replicas_in_sync = 4}.get_per_replica_batch_size(10); });
}

// A4.10, B202: better: PER_REPLICA creates a pipeline for each replica, which TensorFlow supports for
// MirroredStrategy only.
TEST(InputOptions, SelectTheLocationOfBatches) {
  std::vector<InputContext> contexts;
  const auto make = [&contexts](const InputContext& context) {
    contexts.push_back(context);
    return Data::range(5).shard(context.num_input_pipelines, context.input_pipeline_id).batch(2);
  };
  const InputOptions per_replica{.replication_mode = InputReplicationMode::per_replica,
                                 .place_dataset_on_device = true};
  EXPECT_EQ(all(distribute_datasets_from_function(make, {.num_replicas_in_sync = 2}, per_replica)),
            (std::vector<Steps>{{{0, 2}, {1, 3}}, {{4}, {}}}));
  ASSERT_EQ(contexts.size(), 2u);
  EXPECT_EQ(contexts[1].num_input_pipelines, 2);
  EXPECT_EQ(contexts[1].input_pipeline_id, 1);
  const auto dataset = Data::range(8).batch(4);
  EXPECT_THAT(error_of(Code::unimplemented, [&] { distribute_dataset(dataset, {}, per_replica); }),
              testing::HasSubstr("InputReplicationMode::per_replica"));
  EXPECT_THROW(distribute_dataset(dataset, {}, {.fetch_to_device = false, .place_dataset_on_device = true}),
               Error);
  EXPECT_THROW(distribute_dataset(dataset, {}, {.place_dataset_on_device = true}), Error);
  expect_error_naming(Code::invalid_argument, {"InputOptions::per_replica_buffer_size", "-1"},
                      [&] { distribute_dataset(dataset, {}, {.per_replica_buffer_size = -1}); });
  for (const std::int64_t buffer : {0, 1, 3}) {
    const InputOptions options{.fetch_to_device = false, .per_replica_buffer_size = buffer};
    EXPECT_EQ(all(distribute_dataset(dataset, {.replicas = 2}, options)),
              (std::vector<Steps>{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}}));
  }
}

// A4.14, B210: same.
TEST(ArrayDataset, YieldsRows) {
  float sum = 0;
  for (const auto& row : make_array_dataset(Array<float>::vector({1, 2, 3, 4}))) {
    EXPECT_EQ(row.rank(), 0u);
    sum += row.values[0];
  }
  EXPECT_EQ(sum, 10);
  const Array<float> x({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto pairs = make_array_dataset(std::pair(x, Array<std::int64_t>::vector({0, 1, 0, 1})));
  const auto second = all(pairs)[1];
  EXPECT_EQ(second.first, Array<float>::vector({3, 4}));
  EXPECT_EQ(second.second, Array<std::int64_t>::scalar(1));
  const auto steps =
      all(distribute_dataset(make_array_dataset(x).batch_as(4, stack<float>), {.replicas = 2}));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_THAT(steps[0], ElementsAre(Array<float>({2, 2}, {1, 2, 3, 4}), Array<float>({2, 2}, {5, 6, 7, 8})));
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [&] {
                         make_array_dataset(std::pair(x, Array<float>::vector({0, 1})));
                       }),
              testing::HasSubstr("4 and 2 examples"));
  EXPECT_THROW(make_array_dataset(Array<float>::scalar(1)), Error);
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [] {
                         stack<float>({Array<float>::scalar(1), Array<float>(Shape{2})});
                       }),
              testing::HasSubstr("() and (2)"));
}

// ---- Through the coordinator ----

std::atomic<int> arrived{0};

/// Blocks a worker until `workers` closures run concurrently, so that each worker has one.
void wait_for_all(int workers) {
  ++arrived;
  if (!poll_until([&] { return arrived >= workers; }))
    throw Error(Code::deadline_exceeded, "not every worker has a closure");
}

Data shard_of_this_worker(std::int64_t stop, int workers) {
  return Data::range(stop).shard(workers, current_worker_index());
}
std::int64_t sum_of_all(PerWorker<Iterator<std::int64_t>> numbers, int workers) {
  wait_for_all(workers);
  std::int64_t sum = 0;
  while (const auto number = numbers->try_next()) sum += *number;
  return sum;
}
Data shuffled_numbers(std::int64_t stop) { return Data::range(stop).shuffle(stop); }
Numbers read_all(PerWorker<Iterator<std::int64_t>> numbers, int workers) {
  wait_for_all(workers);
  Numbers read;
  while (const auto number = numbers->try_next()) read.push_back(*number);
  return read;
}
Dataset<Numbers> one_to_ten(std::int64_t batch) { return Data::range(1, 11).batch(batch); }
Numbers next_batch(PerWorker<Iterator<Numbers>> batches) { return batches->next(); }
Data hundred_times(const Data& numbers) {
  return numbers.map([](std::int64_t x) { return 100 * x; });
}
Data count_from(std::int64_t start) { return Data::range(start, 1000); }
std::int64_t add_nexts(PerWorker<Iterator<std::int64_t>> a, PerWorker<Iterator<std::int64_t>> b) {
  return a->next() + b->next();
}

using StepsOnWorker = PerWorker<Iterator<PerReplica<Numbers>>>;

DistributedDataset<Numbers> distributed(std::int64_t stop, std::int64_t batch) {
  return get_replicas().distribute_dataset(Data::range(1, stop).batch(batch).repeat());
}
DistributedDataset<Numbers> from_function() {
  return get_replicas().distribute_datasets_from_function([](const InputContext& context) {
    return Data::range(1, 5).batch(context.get_per_replica_batch_size(context.num_replicas_in_sync)).repeat();
  });
}
PerReplica<Numbers> next_step(StepsOnWorker steps) { return steps->next(); }
DistributedDataset<Numbers> twos() {
  const auto two = Data::range(2).map([](std::int64_t) { return std::int64_t{2}; });
  return get_replicas().distribute_dataset(two.repeat().batch(get_replicas().num_replicas_in_sync()));
}
std::atomic<std::int64_t> total{0};
void add_step(StepsOnWorker steps) {
  get_replicas().run([](const Numbers& mine) { total += mine.at(0); }, steps->next());
}

std::pair<Position, std::int64_t> read_some(PerWorker<Iterator<std::int64_t>> numbers) {
  for (int i = 0; i < 4; ++i) numbers->next();
  const Position position = numbers->position();
  return {position, numbers->next()};
}
std::int64_t go_back(PerWorker<Iterator<std::int64_t>> numbers, const Position& position) {
  numbers->restore(position);
  return numbers->next();
}

struct Size {
  int workers;
  int replicas;
};
void PrintTo(const Size& size, std::ostream* out) {
  *out << size.workers << " workers, " << size.replicas << " replicas";
}

class WorkerInput : public ::testing::TestWithParam<Size> {
 protected:
  void SetUp() override {
    arrived = 0;
    total = 0;
  }
  int workers() const { return GetParam().workers; }
  int replicas() const { return GetParam().replicas; }

  RankThreads ranks_{
      {.ranks = 2 + workers(),
       .flags = {
           {"ps", "1"}, {"workers", std::to_string(workers())}, {"replicas", std::to_string(replicas())}}}};
  ParameterServerStrategy strategy_{ranks_.cluster()};
  ClusterCoordinator coordinator_{strategy_};
};

// A5.10, B13: same.
TEST_P(WorkerInput, IsCreatedForItsWorker) {
  const auto numbers = coordinator_.create_per_worker_dataset<&shard_of_this_worker>(10, workers());
  std::vector<RemoteValue<std::int64_t>> sums;
  for (int i = 0; i < workers(); ++i) sums.push_back(coordinator_.schedule<&sum_of_all>(numbers, workers()));
  Numbers found;
  for (const auto& sum : sums) found.push_back(sum.fetch());
  std::sort(found.begin(), found.end());
  if (workers() == 5) {
    EXPECT_THAT(found, ElementsAre(5, 7, 9, 11, 13));
  }
  EXPECT_EQ(std::accumulate(found.begin(), found.end(), std::int64_t{0}), 45);
}

// B21: same.
TEST_P(WorkerInput, IsShuffledDifferentlyOnEachWorker) {
  const auto numbers = coordinator_.create_per_worker_dataset<&shuffled_numbers>(100);
  std::vector<RemoteValue<Numbers>> orders;
  for (int i = 0; i < workers(); ++i) orders.push_back(coordinator_.schedule<&read_all>(numbers, workers()));
  std::set<Numbers> different;
  for (const auto& order : orders) different.insert(order.fetch());
  EXPECT_EQ(different.size(), static_cast<std::size_t>(workers()));
}

// A5.8: better: a dataset that was created on the coordinator is sent to the workers as a description.
// B26: same.
TEST_P(WorkerInput, MayBeADatasetObject) {
  const Dataset<Numbers> one_to_ten_by_four = Data::range(1, 11).batch(4);
  const auto batches = coordinator_.create_per_worker_dataset(one_to_ten_by_four);
  static_assert(std::is_same_v<decltype(batches), const PerWorker<Iterator<Numbers>>>);
  EXPECT_THAT(coordinator_.schedule<&next_batch>(batches).fetch(), ElementsAre(1, 2, 3, 4));
}

// B25: better: a part of a dataset may be created on the coordinator, and the rest by a function on each
// worker.
TEST_P(WorkerInput, MayExtendADatasetObject) {
  const auto hundreds = coordinator_.create_per_worker_dataset<&hundred_times>(
      Data::range(1, 11).filter([](const auto& x) { return x % 2 == 0; }));
  EXPECT_EQ(coordinator_.schedule<&add_nexts>(hundreds, hundreds).fetch(), 600);
}

// A5.8, B27: same.
TEST_P(WorkerInput, MayBeSeveralDatasets) {
  const auto batches = coordinator_.create_per_worker_dataset<&one_to_ten>(4);
  static_assert(std::is_same_v<decltype(batches), const PerWorker<Iterator<Numbers>>>);
  EXPECT_THAT(coordinator_.schedule<&next_batch>(batches).fetch(), ElementsAre(1, 2, 3, 4));
  const auto from_zero = coordinator_.create_per_worker_dataset<&count_from>(0);
  const auto from_five = coordinator_.create_per_worker_dataset<&count_from>(5);
  EXPECT_EQ(coordinator_.schedule<&add_nexts>(from_zero, from_five).fetch(), 5);
  EXPECT_GE(coordinator_.schedule<&add_nexts>(from_zero, from_five).fetch(), 5);
}

// A4.7, B47, B48, B52, B54: same.
TEST_P(WorkerInput, MayBeADistributedDataset) {
  const auto steps = coordinator_.create_per_worker_dataset<&distributed>(5, 4);
  static_assert(std::is_same_v<decltype(steps), const StepsOnWorker>);
  const std::map<int, Steps> expected{{1, {{1, 2, 3, 4}}}, {2, {{1, 2}, {3, 4}}}, {4, {{1}, {2}, {3}, {4}}}};
  EXPECT_EQ(coordinator_.schedule<&next_step>(steps).fetch().values, expected.at(replicas()));
}

// A4.8, B49: same.
TEST_P(WorkerInput, MayBeDistributedFromAFunction) {
  const auto steps = coordinator_.create_per_worker_dataset<&from_function>();
  const Steps expected{{1}, {2}, {3}, {4}};
  EXPECT_EQ(coordinator_.schedule<&next_step>(steps).fetch().values,
            Steps(expected.begin(), expected.begin() + replicas()));
}

// B50, B51: same.
TEST_P(WorkerInput, IsReadByManyClosures) {
  const auto steps = coordinator_.create_per_worker_dataset<&twos>();
  for (int i = 0; i < 5; ++i) coordinator_.schedule<&add_step>(steps);
  coordinator_.join();
  EXPECT_EQ(total, 10 * replicas());
  for (int i = 0; i < 5; ++i) coordinator_.schedule<&add_step>(steps);
  coordinator_.join();
  EXPECT_EQ(total, 20 * replicas());
}

// A4.7, A4.8, A4.14: same.
TEST_P(WorkerInput, IsCreatedForTheReplicasOfTheStrategy) {
  const auto numbers = Data::range(8);
  EXPECT_EQ(all(strategy_.distribute_dataset(numbers.batch(4))),
            all(distribute_dataset(numbers.batch(4), {.replicas = replicas()})));
  InputContext seen{};
  const auto make = [&](const InputContext& context) {
    seen = context;
    return numbers.batch(2);
  };
  const auto dealt = all(strategy_.distribute_datasets_from_function(make));
  EXPECT_EQ(dealt.size(), static_cast<std::size_t>(4 / replicas()));
  EXPECT_EQ(dealt[0].size(), static_cast<std::size_t>(replicas()));
  EXPECT_EQ(seen.num_input_pipelines, 1);
  EXPECT_EQ(seen.num_replicas_in_sync, replicas());
  EXPECT_EQ(all(strategy_.make_dataset_iterator(numbers.batch(2))), dealt);
  EXPECT_EQ(all(strategy_.make_input_fn_iterator(make)), dealt);
  EXPECT_EQ(all(strategy_.make_input_fn_iterator(make, InputReplicationMode::per_replica)).size(), 4u);
  EXPECT_EQ(all(strategy_.distribute_datasets_from_function(
                    make, {.replication_mode = InputReplicationMode::per_replica}))
                .size(),
            4u);  // each replica has its own pipeline with all elements
  error_of(Code::unimplemented, [&] {
    strategy_.distribute_dataset(numbers.batch(4),
                                 InputOptions{.replication_mode = InputReplicationMode::per_replica});
  });
  error_of(Code::failed_precondition,
           [&] { strategy_.run([&] { strategy_.distribute_dataset(numbers.batch(4)); }); });
}

// A5.8: better: an iterator saves its position, and another one continues from it.
TEST_P(WorkerInput, ContinuesFromThePositionOfAnotherIterator) {
  const auto numbers = coordinator_.create_per_worker_dataset<&shuffled_numbers>(100);
  const auto [position, next] = coordinator_.schedule<&read_some>(numbers).fetch();
  const auto again = coordinator_.create_per_worker_dataset<&shuffled_numbers>(100);
  EXPECT_EQ((coordinator_.schedule<&go_back>(again, position).fetch()), next);
}

INSTANTIATE_TEST_SUITE_P(Sizes, WorkerInput,
                         ::testing::Values(Size{1, 1}, Size{5, 1}, Size{2, 2}, Size{1, 4}));

}  // namespace
}  // namespace capstan

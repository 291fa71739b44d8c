// device_memory_test.cpp -- variables in GPU memory of the ps: creating, reading, changing, saving,
// restoring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include "capstan/capstan.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/temporary_directory.hpp"
#include "strategy/context.hpp"
#include "support/expect_error.hpp"
#include "support/gpu_flags.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using testing::HasSubstr;

class DeviceMemory : public testing::Test {
 protected:
  void TearDown() override { forget_stand_ins(); }
};

RankThreadsOptions with_gpus(int ps, RankThreadsOptions::Flags more = {}) {
  RankThreadsOptions options{.ranks = 2 + ps, .flags = gpu_flags()};
  options.flags.emplace_back("ps", std::to_string(ps));
  options.flags.insert(options.flags.end(), more.begin(), more.end());
  return options;
}

/// Variables of many dtypes, optimizers and shapes, in the memory that the scope selects.
struct DeviceProgram {
  DeviceProgram(int ps, ShardMemory memory)
      : ranks(with_gpus(ps)),
        strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{ps}, .memory = memory}),
        scope(std::in_place, &strategy.implementation()),
        table("table", Shape{200, 3}, initializers::normal(0, 1, 3),
              {optimizers::Adam{.learning_rate = 0.1}}),
        counts("counts", Shape{70}, {}, {optimizers::SGD{.learning_rate = -1}}),
        half("half", Shape{40, 8}, initializers::uniform(-1, 1, 4), {optimizers::Momentum{}}),
        dense("dense", Shape{5}, {}, {optimizers::Adagrad{.learning_rate = 0.5}}) {
    scope.reset();
  }
  void push(std::vector<std::int64_t> rows) {
    table.push(rows, std::vector<float>(rows.size() * 3, 0.25F));
    for (std::int64_t& row : rows) row %= 40;
    counts.push(rows, std::vector<std::int64_t>(rows.size(), 1));
    half.push(rows, std::vector<bfloat16>(rows.size() * 8, bfloat16(0.5F)));
    table.flush();
  }
  void push_dense() {
    dense.push_dense(std::vector<double>{1, 2, 3, 4, 5});
    dense.flush();
  }
  auto state() const {
    std::vector<float> halves;
    for (const bfloat16 value : half.pull()) halves.push_back(static_cast<float>(value));
    return std::tuple(table.pull(), counts.pull(), halves, dense.pull());
  }

  RankThreads ranks;
  ParameterServerStrategy strategy;
  std::optional<ParameterServerStrategy::Scope> scope;  // open while variables are created
  Variable<float> table;
  Variable<std::int64_t> counts;
  Variable<bfloat16> half;
  Variable<double> dense;
};

template <class T>
std::vector<T> pulled(const Variable<T>& v, ReadMode mode) {
  std::vector<T> out(v.rows() * v.width());
  v.pull(0, out, mode);
  return out;
}

void push_ones(const Variable<double>& to) { to.push_dense(std::vector<double>(64 * 1024, 1)); }

void reads_and_changes(const Cluster& cluster) {
  ParameterServerStrategy strategy(cluster, {.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy.scope();
  const Variable<float> v("v", Shape{5, 2}, initializers::constant(1),
                          {.optimizer = optimizers::SGD{.learning_rate = 1}, .memory = ShardMemory::device});
  EXPECT_EQ(v.bound()->descriptor.shards[0].region, protocol::kNoRegion);
  v.push(std::vector<std::int64_t>{4, 0, 4}, std::vector<float>{1, 2, 3, 4, 5, 6});
  v.flush();
  const std::vector<float> all{-2, -3, 1, 1, 1, 1, 1, 1, -5, -7};
  for (const ReadMode mode : {ReadMode::relaxed, ReadMode::consistent}) {
    EXPECT_EQ(pulled(v, mode), all);
    EXPECT_EQ(v.lookup(std::vector<std::int64_t>{4, 1, 0, 4}, mode).values,
              (std::vector<float>{-5, -7, 1, 1, -2, -3, -5, -7}));
  }
  v.scatter_max(std::vector<std::int64_t>{4, 2}, std::vector<float>{0, 0, 9, -9});
  v.assign_add(std::vector<float>(10, 1));
  EXPECT_EQ(v.pull(), (std::vector<float>{-1, -2, 2, 2, 10, 2, 2, 2, 1, 1}));
  EXPECT_EQ(strategy.loads()[0].pushes + strategy.loads()[1].pushes, 6U);
}

TEST_F(DeviceMemory, RanksReadAndWriteByEveryPath) {
  for (const char* window : {"auto", "rma", "am"}) {
    SCOPED_TRACE(window);
    const RankThreads ranks(with_gpus(2, {{"window", window}}));
    reads_and_changes(ranks.cluster());
  }
}

TEST_F(DeviceMemory, EmbeddedClusterReadsAndWrites) {
  Settings settings;
  for (const auto& [name, value] : gpu_flags()) settings.set_from_flag(name, value);
  settings.set_from_flag("ps", "2");
  reads_and_changes(Cluster(cluster::Runtime::embedded_cluster(settings)));
}

TEST_F(DeviceMemory, ConsistentReadsSeeCompletePushes) {
  const RankThreads ranks(with_gpus(1));
  ParameterServerStrategy strategy(ranks.cluster(), {.memory = ShardMemory::device});
  const auto scope = strategy.scope();
  ClusterCoordinator coordinator(strategy);
  // A push of all rows takes several entries; it adds 1 to every element.
  const Variable<double> v("v", Shape{64, 1024}, {}, {optimizers::SGD{.learning_rate = -1}});
  constexpr int kClosures = 60;
  for (int i = 0; i < kClosures; ++i) {
    coordinator.schedule<&push_ones>(v);
  }
  double last = 0;
  while (!coordinator.done()) {
    const std::vector<double> now = pulled(v, ReadMode::consistent);
    EXPECT_GE(now[0], last);
    last = now[0];
    ASSERT_EQ(std::count(now.begin(), now.end(), last), static_cast<std::ptrdiff_t>(now.size()));
  }
  coordinator.join();
  EXPECT_EQ(v.pull(), std::vector<double>(64 * 1024, kClosures));
}

/// Saves a base and an increment from one kind of memory, and restores them into the other with another
/// number of ps.
void expect_restored(ShardMemory from, int ps_from, ShardMemory to, int ps_to) {
  SCOPED_TRACE(std::string(to_string(from)) + " " + std::to_string(ps_from) + " to " +
               std::string(to_string(to)) + " " + std::to_string(ps_to));
  const io::TemporaryDirectory directory;
  DeviceProgram program(ps_from, from);
  CheckpointManager manager(program.strategy, {.directory = directory.path()});
  program.push({1, 2, 3});
  (void)manager.save(1, "null", {.incremental = true});
  program.push({7, 199, 7});
  program.push_dense();
  const auto second = manager.save(2, "null", {.incremental = true});
  EXPECT_EQ(io::CheckpointReader(second).variable("table").changed, std::optional<std::uint64_t>(2));
  const auto saved = program.state();
  program.push({8});
  DeviceProgram other(ps_to, to);
  CheckpointManager reader(other.strategy, {.directory = directory.path()});
  EXPECT_EQ(reader.restore_latest(), 2);
  EXPECT_EQ(other.state(), saved);
  other.push({8});  // changes slots and step counts
  EXPECT_THAT(std::get<0>(other.state()),
              testing::Pointwise(testing::FloatNear(1e-6F), std::get<0>(program.state())));
}

TEST_F(DeviceMemory, CheckpointsMoveBetweenHostAndGpu) {
  expect_restored(ShardMemory::device, 2, ShardMemory::host, 1);
  expect_restored(ShardMemory::host, 1, ShardMemory::device, 3);
  expect_restored(ShardMemory::device, 1, ShardMemory::device, 2);
}

TEST_F(DeviceMemory, RejectionNamesTheVariableAndLeavesThePsRunning) {
  if (gpu::count() != 0) GTEST_SKIP() << "the test would use all memory of a GPU";
  const RankThreads ranks(with_gpus(2));
  ParameterServerStrategy strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy.scope();
  const VariableOptions on_gpu{.optimizer = optimizers::Adam{}, .memory = ShardMemory::device};
  const auto pushes = [&](const Variable<float>& v) {
    v.push(std::vector<std::int64_t>{0}, std::vector<float>{1});
    v.flush();
    return v.pull()[0];
  };
  const Variable<float> before("before", Shape{4}, {}, on_gpu);
  const std::uint64_t free = gpu::info(0).free_bytes;
  EXPECT_THAT(error_of(Code::resource_exhausted,
                       [&] {
                         Variable<float> v("large", Shape{1 << 24, 64}, {}, on_gpu);
                       }),
              testing::AllOf(HasSubstr("variable \"large\""), HasSubstr("shard large"), HasSubstr("ps ")));
  EXPECT_EQ(gpu::info(0).free_bytes, free);
  EXPECT_LT(pushes(before), 0);
}

TEST_F(DeviceMemory, RejectsVariableIfThePsHasNoGpu) {
  if (gpu::count() != 0) GTEST_SKIP() << "there is a GPU";
  const RankThreads ranks({.ranks = 3, .flags = {{"ps", "1"}}});
  ParameterServerStrategy strategy(ranks.cluster());
  const auto scope = strategy.scope();
  EXPECT_THAT(error_of(Code::failed_precondition,
                       [] { Variable<float> v("v", Shape{4}, {}, {.memory = ShardMemory::device}); }),
              testing::AllOf(HasSubstr("variable \"v\""), HasSubstr("ps 0"), HasSubstr("no GPU"),
                             HasSubstr("ShardMemory::host")));
  const Variable<float> host("v", Shape{4});
  EXPECT_EQ(host.pull(), std::vector<float>(4, 0));
}

TEST_F(DeviceMemory, StochasticRoundingRequires16BitType) {
  const RankThreads ranks(with_gpus(1));
  ParameterServerStrategy strategy(ranks.cluster());
  const auto scope = strategy.scope();
  for (const ShardMemory memory : {ShardMemory::host, ShardMemory::device}) {
    expect_error(
        Code::invalid_argument,
        "variable \"f\" has dtype float32 and stochastic rounding; expected float16 or bfloat16, or float32 "
        "with int8_rows or communication_dtype bfloat16",
        [&] { Variable<float> v("f", Shape{4}, {}, {.memory = memory, .stochastic_rounding = true}); });
    const Variable<bfloat16> v("b" + std::string(to_string(memory)), Shape{4}, {},
                               {.memory = memory, .stochastic_rounding = true});
    EXPECT_EQ(v.pull().size(), 4U);
  }
}

}  // namespace
}  // namespace capstan

// variable_on_gpu_test.cpp -- pulls from the ps into GPU memory, and pushes of gradients from GPU memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "capstan/capstan.hpp"
#include "cluster/runtime.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/gpu_flags.hpp"
#include "tests/support/rank_threads.hpp"
#include "transport/ucx/context.hpp"

namespace capstan {
namespace {

using Flags = RankThreadsOptions::Flags;

/// Two ps. The test's thread is the coordinator; its reads and pushes use the same paths as a worker's.
class Job {
 public:
  explicit Job(Network network = Network::loop, Flags more = {})
      : ranks_([&] {
          Flags flags = gpu_flags();
          flags.emplace_back("ps", "2");
          flags.insert(flags.end(), more.begin(), more.end());
          return RankThreadsOptions{.ranks = 4, .flags = flags, .network = network};
        }()),
        strategy_(ranks_.cluster(), {FixedShardsPartitioner{2}}),
        scope_(strategy_.scope()) {}

 private:
  RankThreads ranks_;
  ParameterServerStrategy strategy_;
  ParameterServerStrategy::Scope scope_;
};

class VariableOnGpu : public testing::Test {
 protected:
  void TearDown() override { forget_stand_ins(); }
};

/// Returns values that identify their rows. Large arrays need more than one pinned staging buffer.
std::vector<float> values_of(std::int64_t rows, std::int64_t width) {
  std::vector<float> values(static_cast<std::size_t>(rows * width));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

void reads_and_pushes(Network network, const Flags& flags) {
  const Job job(network, flags);
  constexpr std::int64_t kRows = 20'001, kWidth = 33;
  const Variable<float> table("table", Shape{kRows, kWidth}, initializers::zeros(), {optimizers::SGD{1}});
  const auto values = values_of(kRows, kWidth);
  table.assign(values);

  DeviceStream stream(0);
  const DeviceArray<float> all(0, values.size());
  for (const ReadMode mode : {ReadMode::relaxed, ReadMode::consistent}) {
    table.pull(stream, 0, all.span(), mode);
    EXPECT_EQ(to_host(stream, all.span()), values);
  }
  table.pull(stream, kRows - 2, all.span().subspan(0, 2 * kWidth));
  EXPECT_EQ(to_host(stream, all.span().subspan(0, 2 * kWidth)),
            std::vector<float>(values.end() - 2 * kWidth, values.end()));

  std::vector<std::int64_t> ids(kRows);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * 7919 % kRows);
  ids[5] = ids[0];
  for (const ReadMode mode : {ReadMode::relaxed, ReadMode::consistent}) {
    table.lookup(stream, ids, all.span(), mode);
    EXPECT_EQ(to_host(stream, all.span()), table.lookup(ids).values);
  }

  // The stream computes the gradient after the rows have arrived; only stream order ensures it.
  table.pull(stream, 0, all.span());
  table.push_dense(stream, all.span());
  table.flush();
  EXPECT_EQ(table.pull(), std::vector<float>(values.size(), 0));
  const std::vector<std::int64_t> few{3, kRows - 1, 3};
  table.push(stream, few, all.span().subspan(0, 3 * kWidth));
  table.flush();
  for (std::size_t i = 0; i < kWidth; ++i) {
    const float expected = -(values[i] + values[2 * kWidth + i]);
    ASSERT_FLOAT_EQ(table.lookup(few).values[i], expected);
    ASSERT_FLOAT_EQ(table.lookup(few).values[kWidth + i], -values[kWidth + i]);
  }
}

TEST_F(VariableOnGpu, ReadsAndPushesByMessages) { reads_and_pushes(Network::loop, {{"window", "am"}}); }
TEST_F(VariableOnGpu, ReadsAndPushesByMappedMemory) { reads_and_pushes(Network::ucx, {}); }
TEST_F(VariableOnGpu, ReadsAndPushesByRma) {
  const auto ucx = transport::open_context();
  // Every UCX build can read into the memory of a stand-in.
  if (!gpu_flags().empty() || transport::knows_gpu_memory(ucx.get())) {
    reads_and_pushes(Network::ucx, {{"window", "rma"}, {"gpu-transfer", "direct"}});
  }
  reads_and_pushes(Network::ucx, {{"window", "rma"}, {"gpu-transfer", "staged"}});
}

TEST_F(VariableOnGpu, OnlyPullsOfInt8RowsNeedStaging) {
  const auto ucx = transport::open_context();
  if (gpu_flags().empty() && !transport::knows_gpu_memory(ucx.get()))
    GTEST_SKIP() << "UCX has no GPU support";
  for (const bool direct : {true, false}) {
    const Job job(Network::ucx, {{"window", "rma"}, {"gpu-transfer", direct ? "direct" : "auto"}});
    constexpr std::int64_t kRows = 500, kWidth = 8;
    const Variable<float> v("v", Shape{kRows, kWidth}, initializers::zeros(),
                            {.optimizer = optimizers::SGD{-1}, .int8_rows = true});
    const auto gradient = std::vector<float>(kRows * kWidth, 0.3F);
    DeviceStream stream(0);
    const auto all = to_device(stream, gradient);
    v.push_dense(stream, all.span());
    v.flush();
    EXPECT_EQ(v.pull(), gradient);
    const auto pull = [&] { v.pull(stream, 0, all.span()); };
    if (direct) {
      EXPECT_THAT(error_of(Code::failed_precondition, pull),
                  testing::AllOf(testing::HasSubstr("\"v\""), testing::HasSubstr("int8_rows")));
    } else {
      pull();
      EXPECT_EQ(to_host(stream, all.span()), gradient);
    }
  }
}

/// Expects the values of a variable in host memory after the same pushes, and that the ps sends no rows.
void stays_on_the_gpu(ParameterServerStrategy& strategy) {
  const auto scope = strategy.scope();
  constexpr std::int64_t kRows = 500, kWidth = 7;
  const optimizers::Adam adam{.learning_rate = 0.1};
  const Variable<float> there("there", Shape{kRows, kWidth}, initializers::normal(0, 1, 3),
                              {.optimizer = adam, .memory = ShardMemory::device});
  const Variable<float> here("here", Shape{kRows, kWidth}, initializers::normal(0, 1, 3),
                             {.optimizer = adam});
  DeviceStream stream(0), other(0);
  const auto sent = [&] {
    std::uint64_t rows = 0;
    for (const PsLoad& load : strategy.loads()) rows += load.rows_sent;
    return rows;
  };
  const std::uint64_t sent_before = sent();
  const std::vector<std::int64_t> ids{7, 499, 0, 7, 250, 33};
  const DeviceArray<float> rows(0, ids.size() * kWidth);
  const DeviceArray<float> all(0, kRows * kWidth);
  for (int step = 0; step < 5; ++step) {
    there.lookup(stream, ids, rows.span());
    EXPECT_EQ(sent(), sent_before) << "the ps has sent rows that kernels can read";
    const auto expected = here.lookup(ids).values;
    const auto got = to_host(stream, rows.span());
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5) << step;
    // The rows are their own gradient. The push follows stream order, and the buffer is reused at once.
    there.push(stream, ids, rows.span());
    here.push(ids, got);
    there.pull(other, 0, all.span());
    EXPECT_EQ(sent(), sent_before);
    there.push_dense(other, all.span());
    here.push_dense(to_host(other, all.span()));
    there.flush();
    here.flush();
  }
  there.pull(stream, 1, all.span().subspan(0, (kRows - 1) * kWidth));
  const auto end = to_host(stream, all.span().subspan(0, (kRows - 1) * kWidth));
  const auto expected = here.pull();
  for (std::size_t i = 0; i < end.size(); ++i) ASSERT_NEAR(end[i], expected[i + kWidth], 1e-4);
  EXPECT_EQ(sent(), sent_before);
  EXPECT_THROW(there.lookup(stream, std::vector<std::int64_t>{kRows}, all.span().subspan(0, kWidth)), Error);
}

TEST_F(VariableOnGpu, InGpuMemoryBypassesTheHost) {
  RankThreadsOptions::Flags flags = gpu_flags();
  flags.emplace_back("ps", "1");
  const RankThreads ranks({.ranks = 3, .flags = flags});
  ParameterServerStrategy strategy(ranks.cluster());
  stays_on_the_gpu(strategy);
}

TEST_F(VariableOnGpu, InGpuMemoryAcceptsPushesInAnEmbeddedCluster) {
  Settings settings;
  for (const auto& [name, value] : gpu_flags()) settings.set_from_flag(name, value);
  settings.set_from_flag("workers", "1");
  for (const std::int64_t shards : {1, 3}) {
    ParameterServerStrategy strategy(Cluster(cluster::Runtime::embedded_cluster(settings)),
                                     {FixedShardsPartitioner{shards}});
    stays_on_the_gpu(strategy);
  }
}

TEST_F(VariableOnGpu, InGpuMemoryReadsAllShards) {
  RankThreadsOptions::Flags flags = gpu_flags();
  flags.emplace_back("ps", "2");
  const RankThreads ranks({.ranks = 4, .flags = flags});
  ParameterServerStrategy strategy(ranks.cluster(), {FixedShardsPartitioner{3}});
  const auto scope = strategy.scope();
  const Variable<double> table("table", Shape{11, 3}, initializers::normal(0, 1, 5),
                               {.memory = ShardMemory::device});
  DeviceStream stream(0);
  const DeviceArray<double> rows(0, 15);
  const auto whole = table.pull();
  const auto sent = [&] {
    std::uint64_t all = 0;
    for (const PsLoad& load : strategy.loads()) all += load.rows_sent;
    return all;
  };
  // The rows come from shards of both ps; with several stand-ins, one shard is on another GPU.
  const std::uint64_t sent_before = sent();
  table.pull(stream, 3, rows.span());
  EXPECT_EQ(to_host(stream, rows.span()), std::vector<double>(whole.begin() + 9, whole.begin() + 24));
  // The first and the last row of each of three shards, of 4, 4 and 3 rows; rows of 24 bytes are packs of 8.
  for (const std::vector<std::int64_t>& ids :
       {std::vector<std::int64_t>{10, 0, 5, 8, 0}, {3, 4, 7, 8, 10}, {1, 1, 1, 9, 6}}) {
    std::vector<double> expected;
    for (const std::int64_t id : ids)
      expected.insert(expected.end(), whole.begin() + 3 * id, whole.begin() + 3 * id + 3);
    table.lookup(stream, ids, rows.span());
    EXPECT_EQ(to_host(stream, rows.span()), expected);
  }
  EXPECT_EQ(sent(), sent_before) << "a ps has sent rows that kernels can read";
  EXPECT_THROW(table.pull(stream, 7, rows.span()), Error);
}

TEST_F(VariableOnGpu, SupportsOtherTypesAndOptimizers) {
  const Job job;
  const Variable<double> numbers("numbers", Shape{10}, initializers::constant(2), {optimizers::Adam{0.5}});
  const Variable<std::int64_t> whole("whole", Shape{4, 2}, initializers::constant(7), {optimizers::SGD{1}});
  DeviceStream stream(0);
  const auto ones = to_device(stream, std::vector<double>(10, 1));
  numbers.push_dense(stream, ones.span());
  numbers.flush();
  EXPECT_NEAR(numbers.pull()[9], 1.5, 1e-5) << "one step of Adam";
  const DeviceArray<std::int64_t> there(0, 8);
  whole.pull(stream, 0, there.span());
  EXPECT_EQ(to_host(stream, there.span()), std::vector<std::int64_t>(8, 7));
}

TEST_F(VariableOnGpu, SendsNothingForInvalidCalls) {
  const Job job(Network::loop, {{"nan-gradients", "refuse"}});
  const Variable<float> table("table", Shape{4, 2}, initializers::ones());
  const Variable<bool> flags("flags", Shape{4});
  DeviceStream stream(0);
  const auto rows = to_device(stream, std::vector<float>(4, 1));
  const auto message = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  using Ids = std::vector<std::int64_t>;
  EXPECT_NE(message([&] { table.lookup(stream, Ids{0}, rows.span()); }).find("4 were given"),
            std::string::npos);
  EXPECT_NE(message([&] {
              table.lookup(stream, Ids{0, 4}, rows.span());
            }).find("rows 0 to 3"),
            std::string::npos);
  EXPECT_NE(message([&] { table.pull(stream, 3, rows.span()); }).find("rows 3 to 5"), std::string::npos);
  EXPECT_NE(message([&] {
              table.push(stream, Ids{0, 9}, rows.span());
            }).find("rows 0 to 3"),
            std::string::npos);
  EXPECT_NE(message([&] { table.push_dense(stream, rows.span()); }).find("4 were given"), std::string::npos);
  const DeviceArray<std::uint8_t> bits(0, 4);
  EXPECT_NE(message([&] { flags.push_dense(stream, bits.span()); }).find("no gradient"), std::string::npos);
  const auto nan = to_device(stream, std::vector<float>(8, std::numeric_limits<float>::quiet_NaN()));
  EXPECT_NE(message([&] { table.push_dense(stream, nan.span()); }).find("nan"), std::string::npos);
  EXPECT_EQ(table.pull(), std::vector<float>(8, 1));
}

TEST_F(VariableOnGpu, DirectTransferFailsWithoutAnAdapter) {
  const Job job(Network::loop, {{"gpu-transfer", "direct"}});
  const Variable<float> table("table", Shape{4, 2}, initializers::ones());
  DeviceStream stream(0);
  const DeviceArray<float> rows(0, 8);
  EXPECT_THROW(table.pull(stream, 0, rows.span()), Error);
}

}  // namespace
}  // namespace capstan

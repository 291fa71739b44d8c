// push_on_gpu_test.cpp -- pushes of gradients in GPU memory to shards in the ps's GPU.
// Tests: src/client/channel/gpu_gradient.cpp
// Tests: src/client/channel/gpu_push_channel.cpp
// Tests: src/client/channel/ps_gpu_memory.cpp
// Tests: src/client/gpu_client.cpp
// Tests: src/protocol/device_push_sink.hpp
#include <gtest/gtest.h>

#include <numeric>

#include "capstan/device.hpp"
#include "client/client_fixture.hpp"
#include "support/gpu_flags.hpp"

namespace capstan::client {
namespace {

class PushOnGpu : public ClientFixture {
 protected:
  void begin(std::int64_t shards = 3, int ps = 2, RankThreadsOptions::Flags more = {}) {
    RankThreadsOptions::Flags flags = gpu_flags();
    flags.emplace_back("ps", std::to_string(ps));
    flags.insert(flags.end(), more.begin(), more.end());
    start({.ranks = ps + 2, .flags = flags}, shards);
  }
  void TearDown() override {
    ClientFixture::TearDown();
    forget_stand_ins();
  }
  protocol::VariableDescriptor create_on_gpu(const std::string& name, std::int64_t rows, std::int64_t width,
                                             const Optimizer& optimizer) {
    const Shape shape{rows, width};
    return strategy_->variable_creator()
        .create(name, DType::float32, &shape, {{}, 0, {}},
                {.optimizer = optimizer, .memory = ShardMemory::device})
        ->descriptor;
  }
  /// Pushes `gradient` from GPU memory, before the stream has computed it. Returns the result of
  /// GpuClient::push.
  bool push_from_gpu(const protocol::VariableDescriptor& v, std::optional<std::vector<std::int64_t>> ids,
                     const std::vector<float>& gradient) {
    const DeviceStream stream(0);
    const DeviceArray<float> made = to_device(stream, gradient);
    const DeviceArray<float> pushed(0, gradient.size());
    gpu::copy(stream.implementation(), pushed.data(), made.data(), gradient.size() * sizeof(float));
    gpu::Staging staging(0);
    std::optional<std::span<const std::int64_t>> named;
    if (ids) named = *ids;
    const bool pushed_directly = client().gpu().push(
        v, named, reinterpret_cast<const std::byte*>(pushed.data()), stream.implementation(), staging);
    // The caller may reuse the gradient.
    gpu::fill_with_zeros(stream.implementation(), pushed.data(), gradient.size() * sizeof(float));
    stream.wait();
    return pushed_directly;
  }
};

std::vector<float> counted(std::size_t size) {
  std::vector<float> numbers(size);
  for (std::size_t i = 0; i < size; ++i) numbers[i] = static_cast<float>(i % 1000);
  return numbers;
}

TEST_P(PushOnGpu, ReachesAllShards) {
  begin();
  constexpr std::int64_t kRows = 1000, kWidth = 24;
  const auto v = create_on_gpu("v", kRows, kWidth, optimizers::SGD{.learning_rate = -1});
  std::vector<float> expected(kRows * kWidth, 0);
  const auto dense = counted(expected.size());
  ASSERT_TRUE(push_from_gpu(v, std::nullopt, dense));
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += dense[i];
  // Rows of alternating shards, and one duplicate.
  std::vector<std::int64_t> ids(700);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * 337 % kRows);
  ids[3] = ids[600];
  const auto sparse = counted(ids.size() * kWidth);
  ASSERT_TRUE(push_from_gpu(v, ids, sparse));
  for (std::size_t i = 0; i < sparse.size(); ++i)
    expected[static_cast<std::size_t>(ids[i / kWidth]) * kWidth + i % kWidth] += sparse[i];
  // A row of one shard.
  ASSERT_TRUE(push_from_gpu(v, std::vector<std::int64_t>{0}, counted(kWidth)));
  for (std::size_t i = 0; i < kWidth; ++i) expected[i] += static_cast<float>(i);
  client().flush();
  EXPECT_EQ(pull<float>(v), expected);
}

TEST_P(PushOnGpu, MayExceedTheStagingBuffer) {
  begin(1, 1);
  constexpr std::int64_t kRows = 50'000, kWidth = 128;  // 25.6 MB
  const auto v = create_on_gpu("v", kRows, kWidth, optimizers::SGD{.learning_rate = -1});
  const auto gradient = counted(kRows * kWidth);
  ASSERT_TRUE(push_from_gpu(v, std::nullopt, gradient));
  std::vector<std::int64_t> ids(kRows);
  std::iota(ids.begin(), ids.end(), 0);
  ASSERT_TRUE(push_from_gpu(v, ids, gradient));
  client().flush();
  const auto found = pull<float>(v);
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], 2 * gradient[i]) << i;
}

TEST_P(PushOnGpu, IsOneUpdateOfAnOptimizer) {
  begin(2);
  const auto v = create_on_gpu("v", 9, 2, optimizers::Adam{.learning_rate = 0.5});
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(push_from_gpu(v, std::vector<std::int64_t>{8, 0, 3}, std::vector<float>(6, 1)));
    client().flush();
  }
  const auto found = pull<float>(v);
  for (const std::size_t row : {0U, 3U, 8U}) EXPECT_NEAR(found[2 * row], -1, 1e-5) << "two steps of Adam";
  EXPECT_EQ(found[2], 0);
}

TEST_P(PushOnGpu, FallsBackToHostMemory) {
  RankThreadsOptions::Flags flags;
  begin(2);
  const auto v = create_on_gpu("v", 9, 2, optimizers::Adam{});
  EXPECT_FALSE(push_from_gpu(v, std::vector<std::int64_t>{8, 0, 8}, std::vector<float>(6, 1)))
      << "duplicate rows are summed by the host";
  EXPECT_FALSE(push_from_gpu(v, std::vector<std::int64_t>{}, {}));
  const auto on_host = create("host", DType::float32, {9, 2});
  EXPECT_FALSE(push_from_gpu(on_host, std::nullopt, std::vector<float>(18, 1)));
  EXPECT_THROW(push_from_gpu(v, std::vector<std::int64_t>{9}, std::vector<float>(2, 1)), Error);
}

INSTANTIATE_TEST_SUITE_P(Paths, PushOnGpu, testing::Values(PathParam{}, PathParam{Network::ucx, "auto"}),
                         path_name);

class PushOnGpuByMessages : public PushOnGpu {};

TEST_P(PushOnGpuByMessages, UsesHostMemory) {
  begin(2);
  const auto v = create_on_gpu("v", 9, 2, optimizers::SGD{});
  EXPECT_FALSE(push_from_gpu(v, std::nullopt, std::vector<float>(18, 1)));
}

INSTANTIATE_TEST_SUITE_P(Paths, PushOnGpuByMessages,
                         testing::Values(PathParam{Network::loop, "am"}, PathParam{Network::ucx, "rma"}),
                         path_name);

}  // namespace
}  // namespace capstan::client

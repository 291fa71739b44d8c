// collected_push_test.cpp -- pushes in many entries to shards on a GPU, from host memory and from staging
// buffers.
#include "ps/update/collected_push.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "gpu/gpu_to_test.hpp"
#include "gpu/stand_in.hpp"
#include "ps/shard/device_table.hpp"
#include "ps/two_stores.hpp"

namespace capstan::ps {
namespace {

class CollectedPushTest : public gpu::OnGpu {};

constexpr std::uint64_t kCollectedPushWidth = 4;

std::vector<float> gradient_of(std::size_t rows, int seed) {
  std::vector<float> gradient(rows * kCollectedPushWidth);
  for (std::size_t i = 0; i < gradient.size(); ++i)
    gradient[i] = static_cast<float>((i * 31 + static_cast<std::size_t>(seed) * 17) % 23) - 11;
  return gradient;
}

std::vector<std::byte> from_rank(std::vector<std::byte> entry, std::uint32_t rank) {
  protocol::PushHeader header;
  std::memcpy(&header, entry.data(), sizeof header);
  header.rank = rank;
  std::memcpy(entry.data(), &header, sizeof header);
  return entry;
}

/// Returns a push of `count` rows in entries of `part` rows. The push is dense if `rows` is empty.
std::vector<std::vector<std::byte>> entries_of(std::uint32_t variable, const std::vector<std::uint32_t>& rows,
                                               std::size_t count, std::size_t part, int seed,
                                               std::uint32_t rank = 0) {
  const std::vector<float> gradient = gradient_of(count, seed);
  std::vector<std::vector<std::byte>> entries;
  for (std::size_t first = 0; first < count; first += part) {
    const std::size_t end = std::min(count, first + part);
    const auto at = [&](auto& of, std::size_t i) { return of.begin() + static_cast<std::ptrdiff_t>(i); };
    entries.push_back(from_rank(
        push_entry<float>(variable, 0,
                          rows.empty() ? rows : std::vector<std::uint32_t>(at(rows, first), at(rows, end)),
                          rows.empty() ? first : 0, kCollectedPushWidth,
                          std::vector<float>(at(gradient, first * kCollectedPushWidth),
                                             at(gradient, end * kCollectedPushWidth)),
                          first == 0, end == count),
        rank));
  }
  return entries;
}

std::vector<std::uint32_t> every_third(std::uint32_t rows) {
  std::vector<std::uint32_t> numbers(rows);
  for (std::uint32_t i = 0; i < rows; ++i) numbers[i] = i * 3 % rows;
  return numbers;
}

void expect_near(TwoStores& stores, std::uint32_t id) {
  const auto found = stores.gpu.values<float>(id);
  const auto expected = stores.host.values<float>(id);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-4) << i;
}

TEST_F(CollectedPushTest, MatchesTheHostShard) {
  for (const bool deterministic : {false, true}) {
    TwoStores stores(deterministic);
    std::uint32_t id = 0;
    for (const Optimizer& optimizer :
         {Optimizer(optimizers::SGD{.learning_rate = 0.5}), Optimizer(optimizers::Adam{.learning_rate = 0.1}),
          Optimizer(optimizers::Adagrad{}), Optimizer(optimizers::FTRL{})}) {
      ++id;
      stores.create(
          one_shard<float>(id, {1000, kCollectedPushWidth}, optimizer, initializers::uniform(-1, 1, id)));
      for (const std::size_t part : {1000, 999, 37, 1}) {
        for (const auto& entry : entries_of(id, every_third(1000), 1000, part, 1)) stores.push(entry);
        for (const auto& entry : entries_of(id, {}, 1000, part, 2)) stores.push(entry);
      }
      expect_near(stores, id);
    }
  }
}

TEST_F(CollectedPushTest, SplitsLargePushesIntoPieces) {
  TwoStores stores;
  constexpr std::uint32_t kRows = 3 * ShardGpu::kPieceBytes / (kCollectedPushWidth * sizeof(float)) + 5;
  stores.create(one_shard<float>(1, {kRows, kCollectedPushWidth}, optimizers::Adam{.learning_rate = 0.1}));
  for (const auto& entry : entries_of(1, every_third(kRows), kRows, 3000, 1)) stores.push(entry);
  for (const auto& entry : entries_of(1, {}, kRows, 3000, 2)) stores.push(entry);
  expect_near(stores, 1);
}

TEST_F(CollectedPushTest, ReadSeesCollectedEntries) {
  TwoStores stores;
  stores.create(one_shard<float>(1, {100, kCollectedPushWidth}, optimizers::SGD{.learning_rate = 1}));
  stores.create(one_shard<float>(2, {100, kCollectedPushWidth}, optimizers::SGD{.learning_rate = 1}));
  for (const auto& entry : entries_of(1, {}, 100, 7, 3)) {
    stores.push(entry);
    expect_near(stores, 1);
  }
  // Interleaved with other work: on another shard, and an operation without a GPU kernel.
  const auto entries = entries_of(1, every_third(100), 100, 7, 4);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    stores.push(entries[i]);
    if (i % 3 == 1) stores.push(entries_of(2, {}, 100, 100, 5).front());
    if (i % 4 == 2) stores.push(with_op(entries_of(1, {}, 100, 100, 6).front(), protocol::RowOp::add));
  }
  expect_near(stores, 1);
  expect_near(stores, 2);
}

TEST_F(CollectedPushTest, AppliesBothPushesToARowOfTwoPushers) {
  TwoStores stores;
  stores.create(one_shard<float>(1, {10, kCollectedPushWidth}, optimizers::Adam{.learning_rate = 0.1}));
  const auto one = entries_of(1, {0, 1, 2, 3}, 4, 2, 1, 1);
  const auto other = entries_of(1, {2, 3, 0, 1}, 4, 2, 2, 2);
  for (std::size_t i = 0; i < one.size(); ++i) {
    stores.push(one[i]);
    stores.push(other[i]);
  }
  // The pusher begins another push before it has ended the previous one.
  stores.push(one[0]);
  stores.push(one[0]);
  expect_near(stores, 1);
}

TEST_F(CollectedPushTest, AcceptsDensePushWithMissingEntries) {
  TwoStores stores;
  stores.create(one_shard<float>(1, {100, kCollectedPushWidth}, optimizers::SGD{.learning_rate = 1}));
  const auto entries = entries_of(1, {}, 100, 10, 3);
  for (const std::size_t i : {0, 1, 4, 5, 9}) stores.push(entries[i]);
  expect_near(stores, 1);
}

TEST_F(CollectedPushTest, LaunchesEntriesTogether) {
  if (!gpu::are_stand_ins()) GTEST_SKIP() << "only stand-ins count launches";
  const auto gpu = std::make_shared<ShardGpu>(0, false);
  DeviceTable table(gpu, one_shard<float>(1, {1000, kCollectedPushWidth}, optimizers::SGD{}));
  const auto operations_of = [&](const std::vector<std::vector<std::byte>>& entries) {
    const std::uint64_t before = gpu->stream().stand_in()->enqueued();
    for (const auto& entry : entries) {
      protocol::PushHeader header;
      std::memcpy(&header, entry.data(), sizeof header);
      table.apply(header, {}, entry.data() + sizeof header, {1, 0.01});
    }
    return gpu->stream().stand_in()->enqueued() - before;
  };
  const std::uint64_t whole = operations_of(entries_of(1, {}, 1000, 1000, 1));
  EXPECT_EQ(operations_of(entries_of(1, {}, 1000, 10, 1)), whole);
  gpu->settle();
}

/// Acts as a worker on the ps's host: writes gradients with a stream of its own, then writes entries.
class Pusher {
 public:
  Pusher(OneStore& store, std::uint32_t rank)
      : room_(store.store().device()->open_staging_buffer(static_cast<int>(rank), kBytes)),
        rank_(rank),
        mapped_(0, room_.key) {}

  std::vector<std::byte> entry(std::vector<std::byte> of, std::uint64_t at) const {
    protocol::PushHeader header;
    std::memcpy(&header, of.data(), sizeof header);
    const std::uint64_t numbers = protocol::number_bytes(header.kind, header.rows);
    const std::uint64_t bytes = header.rows * kCollectedPushWidth * sizeof(float);
    const gpu::Stream stream(0);
    if (at <= kBytes - bytes) {
      gpu::copy(stream, mapped_.data() + at, of.data() + sizeof header + numbers, bytes);
      stream.wait();
    }
    header.in_staging_buffer = 1;
    header.rank = rank_;
    header.bytes = protocol::entry_bytes_in_staging_buffer(header.kind, header.rows);
    of.resize(header.bytes);
    std::memcpy(of.data(), &header, sizeof header);
    const protocol::BufferSlot location{room_.number, 0, at};
    std::memcpy(of.data() + sizeof header + numbers, &location, sizeof location);
    return of;
  }

  static constexpr std::uint64_t kBytes = std::uint64_t{1} << 20;

 private:
  protocol::StagingBufferKey room_;
  std::uint32_t rank_;
  gpu::MappedMemory mapped_;
};

TEST_F(CollectedPushTest, AcceptsGradientsInStagingBuffers) {
  for (const bool deterministic : {false, true}) {
    TwoStores stores(deterministic);
    stores.create(one_shard<float>(1, {1000, kCollectedPushWidth}, optimizers::Adam{.learning_rate = 0.1}));
    const Pusher pusher(stores.gpu, 7);
    for (const std::size_t part : {1000, 30}) {
      for (const auto& rows : {every_third(1000), std::vector<std::uint32_t>{}}) {
        std::uint64_t at = 256;
        for (const auto& entry : entries_of(1, rows, 1000, part, 1)) {
          apply_entry(stores.host.store(), entry);
          apply_entry(stores.gpu.store(), pusher.entry(entry, at));
          at += part * kCollectedPushWidth * sizeof(float);
        }
        stores.gpu.store().settle();
        expect_near(stores, 1);
      }
    }
  }
}

TEST_F(CollectedPushTest, DropsGradientsOutsideTheBuffersOfTheirPusher) {
  OneStore gpu(ShardMemory::device);
  gpu.create(one_shard<float>(1, {100, kCollectedPushWidth}, optimizers::SGD{}));
  const Pusher pusher(gpu, 7);
  const auto whole = entries_of(1, {}, 100, 100, 1).front();
  apply_entry(gpu.store(), from_rank(pusher.entry(whole, 0), 8));
  apply_entry(gpu.store(),
              pusher.entry(whole, Pusher::kBytes - 100 * kCollectedPushWidth * sizeof(float) + 1));
  apply_entry(gpu.store(), pusher.entry(whole, ~std::uint64_t{0} - 63));
  apply_entry(gpu.store(), with_op(pusher.entry(whole, 0), protocol::RowOp::set));
  EXPECT_EQ(gpu.store().statistics().rows_pushed, 0U);
  EXPECT_EQ(gpu.values<float>(1), std::vector<float>(100 * kCollectedPushWidth, 0));
  apply_entry(gpu.store(), pusher.entry(whole, Pusher::kBytes - 100 * kCollectedPushWidth * sizeof(float)));
  EXPECT_EQ(gpu.store().statistics().rows_pushed, 100U);
  gpu.store().device()->release_staging_buffers(7);
  apply_entry(gpu.store(), pusher.entry(whole, 0));
  EXPECT_EQ(gpu.store().statistics().rows_pushed, 100U) << "the buffers of this rank were released";
}

TEST_F(CollectedPushTest, ReusesAReleasedBuffer) {
  OneStore none(ShardMemory::host);
  none.create(one_shard<float>(1, {10, kCollectedPushWidth}, optimizers::SGD{}));
  EXPECT_TRUE(none.store().device()->open_staging_buffer(1, 4096).key.empty()) << "this ps has no GPU";
  OneStore gpu(ShardMemory::device);
  gpu.create(one_shard<float>(1, {10, kCollectedPushWidth}, optimizers::SGD{}));
  const auto first = gpu.store().device()->open_staging_buffer(1, 4096);
  const auto second = gpu.store().device()->open_staging_buffer(1, 4096);
  EXPECT_NE(first.number, second.number);
  gpu.store().device()->release_staging_buffers(1);
  EXPECT_EQ(gpu.store().device()->open_staging_buffer(2, 4096).number, first.number);
  EXPECT_NE(gpu.store().device()->open_staging_buffer(3, 8192).number, second.number);
  EXPECT_EQ(gpu.store().device()->open_staging_buffer(4, 4096).number, second.number);
}

}  // namespace
}  // namespace capstan::ps

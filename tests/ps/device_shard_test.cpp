// device_shard_test.cpp -- compares a shard in GPU memory with the same shard in host memory.
// Tests: src/ps/shard/device_context.cpp
// Tests: src/ps/shard/shard_rounding.hpp
// Tests: src/ps/shard/store_device.cpp
#include "ps/shard/device_shard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <random>

#include "base/with_type.hpp"
#include "capstan/error.hpp"
#include "gpu/gpu_to_test.hpp"
#include "gpu/stand_in.hpp"
#include "ps/shard/device_snapshot.hpp"
#include "ps/shard/device_table.hpp"
#include "ps/two_stores.hpp"

namespace capstan::ps {
namespace {

using testing::HasSubstr;

class DeviceShardTest : public gpu::OnGpu {};

std::vector<Optimizer> all_optimizers() {
  return {optimizers::SGD{.learning_rate = 0.25},
          optimizers::Adagrad{.learning_rate = 0.3, .initial_accumulator = 0.5},
          optimizers::Adam{.learning_rate = 0.1},
          optimizers::Momentum{},
          optimizers::Momentum{.nesterov = true},
          optimizers::RMSProp{},
          optimizers::AdamW{.weight_decay = 0.5},
          optimizers::FTRL{.learning_rate = 0.1, .initial_accumulator = 0.5, .l1 = 0.25}};
}

/// Applies sparse pushes, with a repeated row if `twice`, and partial dense pushes.
template <class T>
void push_some(TwoStores& stores, std::uint32_t id, std::uint64_t rows, std::uint64_t width, bool twice) {
  std::mt19937 random(id);
  std::uniform_int_distribution<int> whole(-9, 9);
  for (std::uint32_t step = 0; step < 9; ++step) {
    std::vector<std::uint32_t> numbers(rows);
    std::iota(numbers.begin(), numbers.end(), 0U);
    std::uint64_t first_row = 0;
    const bool dense = step % 3 == 2;
    if (dense) {
      first_row = step % 2;
      numbers.pop_back();
    } else {
      std::shuffle(numbers.begin(), numbers.end(), random);
      numbers.resize(1 + step % rows);
      if (twice) numbers.push_back(numbers.front());
    }
    std::vector<T> gradient;
    for (std::size_t i = 0; i < numbers.size() * width; ++i)
      gradient.push_back(static_cast<T>(static_cast<Arithmetic<T>>(whole(random))));
    stores.push(
        push_entry<T>(id, 0, dense ? std::vector<std::uint32_t>{} : numbers, first_row, width, gradient));
  }
}

template <class T>
void expect_same(TwoStores& stores, std::uint32_t id, double tolerance) {
  const std::vector<T> expected = stores.host.values<T>(id);
  const std::vector<T> found = stores.gpu.values<T>(id);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto value = static_cast<double>(static_cast<Arithmetic<T>>(expected[i]));
    EXPECT_NEAR(static_cast<double>(static_cast<Arithmetic<T>>(found[i])), value,
                tolerance * std::max(1.0, std::abs(value)))
        << "element " << i;
  }
}

template <class T>
void expect_same_for_all(TwoStores& stores, std::uint32_t& id, const Optimizer& optimizer, double tolerance) {
  for (const std::vector<std::uint64_t>& shape : {std::vector<std::uint64_t>{7}, {5, 3}, {6, 16}, {4, 1}}) {
    SCOPED_TRACE(protocol::describe(optimizer) + " " + std::string(to_string(dtype_of<T>)));
    ++id;
    stores.create(one_shard<T>(id, shape, optimizer, initializers::uniform(-4, 4, id)));
    const std::uint64_t width = shape.size() == 2 ? shape[1] : 1;
    push_some<T>(stores, id, shape[0], width, optimizer.kind == OptimizerKind::sgd);
    expect_same<T>(stores, id, tolerance);
  }
}

TEST_F(DeviceShardTest, PushesMatchTheHostForEveryDtypeAndOptimizer) {
  for (const bool deterministic : {false, true}) {
    TwoStores stores(deterministic);
    std::uint32_t id = 0;
    for (const Optimizer& optimizer : all_optimizers()) {
      expect_same_for_all<float>(stores, id, optimizer, 1e-5);
      expect_same_for_all<double>(stores, id, optimizer, 1e-12);
      expect_same_for_all<float16>(stores, id, optimizer, 4e-3);
      expect_same_for_all<bfloat16>(stores, id, optimizer, 3e-2);
    }
    const Optimizer sgd = optimizers::SGD{.learning_rate = 2};
    expect_same_for_all<std::int64_t>(stores, id, sgd, 0);
    expect_same_for_all<std::int32_t>(stores, id, sgd, 0);
  }
}

TEST_F(DeviceShardTest, LearningRatesMatchTheHost) {
  TwoStores stores;
  std::uint32_t id = 0;
  for (Optimizer optimizer : all_optimizers()) {
    optimizer.schedule = {.kind = ScheduleKind::polynomial_decay, .decay_steps = 6, .end = 0.05};
    expect_same_for_all<double>(stores, id, optimizer, 1e-12);
    SCOPED_TRACE(protocol::describe(optimizer));
    ++id;
    stores.create(one_shard<double>(id, {6, 4}, optimizer, initializers::uniform(-4, 4, id)));
    push_some<double>(stores, id, 6, 4, false);
    // A part of the previous push is still being collected, with the previous rate.
    stores.push(push_entry<double>(id, 0, {1, 2}, 0, 4, std::vector<double>(8, 2), true, false));
    stores.push(push_entry<double>(id, 0, {3}, 0, 4, std::vector<double>(4, 2), false, true));
    stores.push(rate_entry(id, 0, 0.75));
    push_some<double>(stores, id, 6, 4, false);
    expect_same<double>(stores, id, 1e-12);
  }
}

TEST_F(DeviceShardTest, SumsGradientsOfRepeatedRows) {
  OneStore gpu(ShardMemory::device);
  gpu.create(one_shard<double>(1, {4, 2}, optimizers::Adagrad{.learning_rate = 1, .initial_accumulator = 1}));
  gpu.create(one_shard<double>(2, {4, 2}, optimizers::Adagrad{.learning_rate = 1, .initial_accumulator = 1}));
  apply_entry(gpu.store(), push_entry<double>(1, 0, {3, 0, 3}, 0, 2, {1, 2, 5, 6, 10, 20}));
  apply_entry(gpu.store(), push_entry<double>(2, 0, {0, 3}, 0, 2, {5, 6, 11, 22}));
  EXPECT_EQ(gpu.values<double>(1), gpu.values<double>(2));
}

template <class T>
void expect_same_operations(TwoStores& stores, std::uint32_t id) {
  SCOPED_TRACE(to_string(dtype_of<T>));
  stores.create(
      one_shard<T>(id, {6, 3}, optimizers::SGD{.learning_rate = 1}, initializers::uniform(1, 30, 5)));
  for (const auto op :
       {protocol::RowOp::set, protocol::RowOp::add, protocol::RowOp::sub, protocol::RowOp::mul,
        protocol::RowOp::div, protocol::RowOp::min, protocol::RowOp::max}) {
    const auto number = static_cast<int>(op);
    std::vector<T> dense, sparse;
    for (int i = 0; i < 12; ++i) dense.push_back(static_cast<T>(1 + (i * 5 + number) % 7));
    for (int i = 0; i < 15; ++i) sparse.push_back(static_cast<T>(1 + (i * 3 + number) % 5));
    stores.push(with_op(push_entry<T>(id, 0, {}, 1, 3, dense), op));
    stores.push(with_op(push_entry<T>(id, 0, {4, 1, 4, 0, 4}, 0, 3, sparse), op));
    EXPECT_EQ(stores.gpu.values<T>(id), stores.host.values<T>(id)) << number;
  }
}

TEST_F(DeviceShardTest, RowOperationsMatchTheHost) {
  TwoStores stores;
  expect_same_operations<float>(stores, 1);
  expect_same_operations<double>(stores, 2);
  expect_same_operations<std::int64_t>(stores, 3);
  expect_same_operations<std::int32_t>(stores, 4);
}

TEST_F(DeviceShardTest, OperationsOn16BitNumbersAndBoolsMatchTheHost) {
  TwoStores stores;
  stores.create(one_shard<bfloat16>(1, {3, 2}, optimizers::SGD{}, initializers::uniform(-1, 1, 3)));
  stores.push(with_op(push_entry<bfloat16>(1, 0, {2, 2}, 0, 2,
                                           {bfloat16(0.3F), bfloat16(7.0F), bfloat16(0.01F), bfloat16(1.0F)}),
                      protocol::RowOp::add));
  const auto bits = [](const std::vector<bfloat16>& values) {
    std::vector<std::uint16_t> out;
    for (const bfloat16 value : values) out.push_back(value.bits());
    return out;
  };
  EXPECT_EQ(bits(stores.gpu.values<bfloat16>(1)), bits(stores.host.values<bfloat16>(1)));

  protocol::CreateShard flags = one_shard<std::int32_t>(2, {5}, optimizers::SGD{}, initializers::constant(1));
  flags.dtype = DType::boolean;
  stores.create(flags);
  stores.push(with_op(push_entry<std::uint8_t>(2, 0, {4, 1}, 0, 1, {0, 0}), protocol::RowOp::set));
  EXPECT_EQ(stores.gpu.values<std::uint8_t>(2), (std::vector<std::uint8_t>{1, 0, 1, 1, 0}));
}

TEST_F(DeviceShardTest, SplitsLargePushesIntoPieces) {
  TwoStores stores;
  // Three pieces of pinned memory, and rows of which no two fit in one piece.
  const std::uint64_t rows = 3 * ShardGpu::kPieceBytes / (512 * sizeof(float));
  stores.create(one_shard<float>(1, {rows, 512}, optimizers::Adagrad{}, initializers::uniform(-1, 1, 2)));
  std::vector<float> gradient(rows * 512);
  std::iota(gradient.begin(), gradient.end(), -1000.0F);
  std::vector<std::uint32_t> numbers(rows);
  for (std::uint32_t i = 0; i < rows; ++i) numbers[i] = static_cast<std::uint32_t>(rows - 1 - i);
  stores.push(push_entry<float>(1, 0, {}, 0, 512, gradient));
  stores.push(push_entry<float>(1, 0, numbers, 0, 512, gradient));
  expect_same<float>(stores, 1, 1e-5);
  const std::uint64_t width = ShardGpu::kPieceBytes / sizeof(float) * 3 / 4;
  stores.create(one_shard<float>(2, {2, width}, optimizers::SGD{}, initializers::uniform(-1, 1, 4)));
  stores.push(push_entry<float>(2, 0, {1, 0}, 0, width, std::vector<float>(2 * width, 0.5F)));
  expect_same<float>(stores, 2, 0);
}

TEST_F(DeviceShardTest, PushInPartsIsOneUpdateAndSettlesOnRequest) {
  OneStore gpu(ShardMemory::device);
  const Optimizer adam = optimizers::Adam{.learning_rate = 1};
  gpu.create(one_shard<double>(1, {4}, adam));
  gpu.create(one_shard<double>(2, {4}, adam));
  EXPECT_FALSE(gpu.store().unsettled());
  apply_entry(gpu.store(), push_entry<double>(1, 0, {}, 0, 1, {1, -2, 3, -4}));
  apply_entry(gpu.store(), push_entry<double>(2, 0, {}, 0, 1, {1, -2}, true, false));
  EXPECT_FALSE(gpu.store().is_consistent(2, 0));
  apply_entry(gpu.store(), push_entry<double>(2, 0, {}, 2, 1, {3, -4}, false, true));
  EXPECT_TRUE(gpu.store().is_consistent(2, 0));
  EXPECT_TRUE(gpu.store().unsettled());
  gpu.store().settle();
  EXPECT_FALSE(gpu.store().unsettled());
  EXPECT_EQ(gpu.values<double>(1), gpu.values<double>(2));
  EXPECT_EQ(gpu.store().statistics().pushes, 2U);
  EXPECT_EQ(gpu.store().statistics().rows_pushed, 8U);
}

TEST_F(DeviceShardTest, DeterministicSumsAreReproducible) {
  const auto run = [] {
    OneStore gpu(ShardMemory::device, /*deterministic=*/true);
    gpu.create(one_shard<float>(1, {8, 4}, optimizers::SGD{.learning_rate = 0.1}));
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<std::uint32_t> rows(4096);
    std::vector<float> gradient(rows.size() * 4);
    for (std::uint32_t& row : rows) row = static_cast<std::uint32_t>(random() % 8);
    for (float& g : gradient) g = normal(random);
    apply_entry(gpu.store(), push_entry<float>(1, 0, rows, 0, 4, gradient));
    return gpu.values<float>(1);
  };
  const std::vector<float> once = run();
  EXPECT_EQ(run(), once);
  EXPECT_NE(once[0], 0);
}

TEST_F(DeviceShardTest, StochasticRoundingPreservesTheMeanOfSmallUpdates) {
  for (const ShardMemory memory : {ShardMemory::host, ShardMemory::device}) {
    const auto ones = [](bool stochastic, std::uint64_t rows) {
      protocol::CreateShard request = one_shard<bfloat16>(
          1, {rows, 1024}, optimizers::SGD{.learning_rate = 1}, initializers::constant(1));
      request.storage.stochastic_rounding = stochastic;
      return request;
    };
    const auto run = [&](bool stochastic) {
      OneStore one(memory);
      one.create(ones(stochastic, 4));
      // 16 updates by 1/16 of the spacing of these numbers: rounding to nearest would never change them.
      const std::vector<bfloat16> dense(4096, bfloat16(-0.0078125F / 16));
      const std::vector<bfloat16> sparse(2048, dense[0]);
      for (int push = 0; push < 8; ++push) {
        apply_entry(one.store(), push_entry<bfloat16>(1, 0, {}, 0, 1024, dense));
        apply_entry(one.store(), push_entry<bfloat16>(1, 0, {0, 2}, 0, 1024, sparse));
        apply_entry(one.store(), push_entry<bfloat16>(1, 0, {3, 1}, 0, 1024, sparse));
      }
      return one.values<bfloat16>(1);
    };
    const auto mean = [](const std::vector<bfloat16>& values) {
      double sum = 0;
      for (const bfloat16 value : values) sum += static_cast<float>(value);
      return sum / static_cast<double>(values.size());
    };
    const std::vector<bfloat16> once = run(true);
    EXPECT_EQ(mean(run(false)), 1) << to_string(memory);
    EXPECT_NEAR(mean(once), 1.0078125, 0.0005) << to_string(memory);
    const std::span<const bfloat16> rows = once;
    EXPECT_FALSE(std::equal(rows.begin(), rows.begin() + 1024, rows.begin() + 1024)) << "rows differ";
    // A row that occurs twice: with the same random bits, all values would be 1 or 1 + 2 x the spacing.
    OneStore twice(memory);
    twice.create(ones(true, 1));
    const std::vector<bfloat16> halves(2048, bfloat16(-0.0078125F / 2));
    apply_entry(twice.store(), push_entry<bfloat16>(1, 0, {0, 0}, 0, 1024, halves));
    const std::vector<bfloat16> sums = twice.values<bfloat16>(1);
    EXPECT_GT(std::count(sums.begin(), sums.end(), bfloat16(1.0078125F)), 256) << to_string(memory);
    EXPECT_EQ(run(true), once) << to_string(memory) << ": the same updates have the same results";
  }
}

TEST_F(DeviceShardTest, InitialValuesMatchTheHostBitForBit) {
  TwoStores stores;
  std::uint32_t id = 0;
  const auto expect_equal = [&](const Initializer& initializer, std::vector<std::uint64_t> shape) {
    stores.create(one_shard<float>(++id, std::move(shape), optimizers::Adagrad{}, initializer));
    EXPECT_EQ(stores.gpu.values<float>(id), stores.host.values<float>(id)) << id;
  };
  expect_equal(initializers::normal(0, 1, 7), {1000, 1100});  // more than a piece
  expect_equal(initializers::uniform(-1, 1, 7), {3, 3});
  expect_equal(initializers::orthogonal(1, 3), {6, 4});
  expect_equal(initializers::identity(2), {5, 5});
  expect_equal(initializers::constant(2), {0, 5});
  stores.gpu.create(one_shard<float>(++id, {5, 5}, optimizers::Adagrad{}, initializers::constant(2)), true);
  EXPECT_EQ(stores.gpu.values<float>(id), std::vector<float>(25, 0));
}

TEST_F(DeviceShardTest, AppliesTheSumOfAnUpdateGroup) {
  TwoStores stores;
  protocol::CreateShard request = one_shard<double>(1, {4, 2}, optimizers::Adam{.learning_rate = 0.5});
  request.group = 1;
  for (OneStore* one : {&stores.host, &stores.gpu}) {
    one->store().create_group({1, protocol::GroupMode::synchronous, 0, true, 0, {5, 6}});
    one->create(request);
  }
  const auto from = [](std::uint32_t rank, std::vector<std::byte> entry) {
    protocol::PushHeader header;
    std::memcpy(&header, entry.data(), sizeof header);
    header.rank = rank;
    std::memcpy(entry.data(), &header, sizeof header);
    return entry;
  };
  stores.push(from(5, push_entry<double>(1, 0, {1, 3}, 0, 2, {1, 2, 3, 4})));
  stores.push(from(6, push_entry<double>(1, 0, {3, 0}, 0, 2, {5, 6, 7, 8})));
  EXPECT_EQ(stores.gpu.values<double>(1), std::vector<double>(8, 0));
  protocol::PushHeader step;
  step.kind = protocol::PushKind::step;
  step.variable = 1;
  step.first_row = 1;
  for (const std::uint32_t rank : {5U, 6U}) {
    step.rank = rank;
    stores.host.store().apply(step, {}, nullptr);
    stores.gpu.store().apply(step, {}, nullptr);
  }
  EXPECT_NE(stores.gpu.values<double>(1)[0], 0);
  expect_same<double>(stores, 1, 1e-12);
}

TEST_F(DeviceShardTest, DropsAPushThatDoesNotFit) {
  OneStore gpu(ShardMemory::device);
  gpu.create(one_shard<float>(1, {4, 2}, optimizers::SGD{}));
  apply_entry(gpu.store(), push_entry<float>(1, 0, {4}, 0, 2, {1, 1}));
  apply_entry(gpu.store(), push_entry<float>(1, 0, {0xFFFFFFFF}, 0, 2, {1, 1}));
  apply_entry(gpu.store(), push_entry<float>(1, 0, {}, 3, 2, {1, 1, 1, 1}));
  EXPECT_FALSE(gpu.store().unsettled());
  EXPECT_EQ(gpu.values<float>(1), std::vector<float>(8, 0));
}

std::vector<float> frozen(FrozenRows& rows, std::size_t array, std::uint64_t width) {
  std::vector<float> out(rows.rows() * width);
  std::mutex mutex;  // stands in for the mutex of the store
  // In pieces, as the writer of a checkpoint reads them.
  for (std::uint64_t first = 0; first < rows.rows(); first += 1000) {
    const std::uint64_t count = std::min<std::uint64_t>(1000, rows.rows() - first);
    rows.copy(array, first, count, reinterpret_cast<std::byte*>(out.data() + first * width), mutex);
  }
  return out;
}

/// Expects that a snapshot excludes later pushes, and that it is in GPU memory only if `on_gpu`.
void expect_frozen(std::uint64_t gpu_bytes, bool on_gpu) {
  gpu::use_stand_ins(1, gpu_bytes);
  constexpr std::uint64_t kRows = 1 << 17;
  const auto gpu = std::make_shared<ShardGpu>(0, false);
  const auto shard = std::make_shared<DeviceTable>(
      gpu, one_shard<float>(1, {kRows, 4}, optimizers::Adagrad{.learning_rate = 1}));
  std::vector<float> values(kRows * 4);
  std::iota(values.begin(), values.end(), 0.0F);
  for (const std::size_t array : {0U, 1U}) {
    shard->fill(array, [&](std::uint64_t first, std::uint64_t bytes, std::byte* to) {
      std::memcpy(to, reinterpret_cast<const std::byte*>(values.data()) + first, bytes);
    });
  }
  TouchedRows touched(1, kRows);
  touched.add(std::vector<std::uint32_t>{7, 70000});
  DeviceSnapshot all(*shard, std::nullopt);
  DeviceSnapshot some(*shard, touched);
  EXPECT_EQ(all.is_on_gpu(), on_gpu);
  const std::vector<float> gradient(kRows * 4, 1);
  protocol::PushHeader header;
  header.kind = protocol::PushKind::dense;
  header.rows = kRows;
  shard->apply(header, {}, reinterpret_cast<const std::byte*>(gradient.data()), {1, 1});
  for (const std::size_t array : {0U, 1U}) EXPECT_EQ(frozen(all, array, 4), values);
  EXPECT_EQ(some.row(1), 70000U);
  EXPECT_EQ(frozen(some, 0, 4), (std::vector<float>{28, 29, 30, 31, 280000, 280001, 280002, 280003}));
  std::vector<float> now(4);
  shard->read_rows(1, std::vector<std::uint32_t>{1}, reinterpret_cast<std::byte*>(now.data()));
  EXPECT_EQ(now, (std::vector<float>{5, 6, 7, 8})) << "the push was applied after the copies";
}

TEST_F(DeviceShardTest, SnapshotIsConsistentInGpuAndHostMemory) {
  stream_.reset();
  if (!gpu::are_stand_ins()) GTEST_SKIP() << "needs a GPU with little memory";
  expect_frozen(std::uint64_t{64} << 20, true);
  expect_frozen(std::uint64_t{15} << 20, false);
}

std::string refusal(const std::function<void()>& of, Code code) {
  try {
    of();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "nothing was refused";
}

TEST_F(DeviceShardTest, RejectsAVariableWithoutAGpu) {
  transport::LoopHub hub;
  const auto fabric = hub.open();
  Store store(*fabric, 1 << 20, 3);
  store.device()->configure([]() -> int { throw Error(Code::failed_precondition, "no driver"); }, false);
  protocol::CreateShard request = one_shard<float>(1, {4, 2}, optimizers::SGD{});
  request.memory = ShardMemory::device;
  EXPECT_THAT(refusal([&] { (void)store.create(request); }, Code::failed_precondition),
              testing::AllOf(HasSubstr("\"v1\""), HasSubstr("ps 3 "), HasSubstr("no driver"),
                             HasSubstr("--ps-memory host")));
  request.memory = ShardMemory::host;
  EXPECT_NO_THROW((void)store.create(request));
}

TEST_F(DeviceShardTest, RejectsAVariableThatExceedsGpuMemory) {
  stream_.reset();
  if (!gpu::are_stand_ins()) GTEST_SKIP() << "would use all memory of a GPU";
  gpu::use_stand_ins(1, std::uint64_t{12} << 20);
  OneStore gpu(ShardMemory::device);
  gpu.create(one_shard<float>(1, {4, 2}, optimizers::SGD{}));
  const std::uint64_t free = gpu::info(0).free_bytes;
  const auto large = one_shard<float>(2, {300000, 4}, optimizers::Adam{});
  EXPECT_THAT(refusal([&] { gpu.create(large); }, Code::resource_exhausted),
              testing::AllOf(HasSubstr("shard v2 of variable \"v2\""), HasSubstr("ps 0"),
                             HasSubstr("300000 rows"), HasSubstr("GPU 0")));
  EXPECT_EQ(gpu::info(0).free_bytes, free);
  apply_entry(gpu.store(), push_entry<float>(1, 0, {3}, 0, 2, {1, 1}));
  EXPECT_NE(gpu.values<float>(1)[6], 0);
  const std::uint64_t then = gpu::info(0).free_bytes;
  gpu.create(one_shard<float>(3, {1000, 4}, optimizers::Adam{}));
  EXPECT_LT(gpu::info(0).free_bytes, then);
  EXPECT_EQ(gpu.store().statistics().gpu_bytes, 4 * 2 * 4U + 1000 * 4 * 4 * 3U) << "values and Adam's slots";
  gpu.store().drop(3);
  EXPECT_EQ(gpu::info(0).free_bytes, then);
  EXPECT_EQ(gpu.store().statistics().gpu_bytes, 4 * 2 * 4U);
}

TEST_F(DeviceShardTest, CreationReservesMemoryForPushesOfAnySize) {
  stream_.reset();
  if (!gpu::are_stand_ins()) GTEST_SKIP() << "would use all memory of a GPU";
  for (const bool deterministic : {false, true}) {
    gpu::use_stand_ins(1, std::uint64_t{40} << 20);
    TwoStores stores(deterministic);
    stores.create(one_shard<float>(1, {50, 4}, optimizers::SGD{.learning_rate = 1}));
    stores.create(one_shard<bfloat16>(2, {50, 4}, optimizers::SGD{.learning_rate = 1}));
    const gpu::Memory all_the_rest(0, gpu::info(0).free_bytes);
    constexpr std::size_t kRows = 600000;  // several pieces
    std::vector<std::uint32_t> numbers(kRows);
    for (std::size_t i = 0; i < kRows; ++i) numbers[i] = i % 50;
    stores.push(push_entry<float>(1, 0, numbers, 0, 4, std::vector<float>(kRows * 4, 1)));
    numbers.resize(50);
    stores.push(push_entry<bfloat16>(2, 0, numbers, 0, 4, std::vector<bfloat16>(200, bfloat16(3))));
    EXPECT_EQ(stores.gpu.values<float>(1), std::vector<float>(200, -static_cast<float>(kRows / 50)));
    expect_same<bfloat16>(stores, 2, 0);
  }
}

TEST_F(DeviceShardTest, PublishesStepsAndCountersAfterTheGpuHasSettled) {
  transport::LoopHub hub;
  const std::unique_ptr<transport::Fabric> fabric = hub.open();
  Store* shown = nullptr;
  int steps = 0, counted = 0;
  const auto expect_settled = [&](int& seen) {
    ++seen;
    EXPECT_FALSE(shown->unsettled());
  };
  Store store(
      *fabric, 1 << 20, 0, [&](std::uint32_t, std::uint64_t) { expect_settled(steps); },
      [&](std::uint32_t, std::uint64_t) { expect_settled(counted); });
  shown = &store;
  store.device()->configure([] { return 0; }, false);
  store.create_group({.id = 1, .mode = protocol::GroupMode::synchronous, .workers = {2}});
  protocol::CreateShard request = one_shard<float>(1, {4, 1}, optimizers::SGD{.learning_rate = 1});
  request.memory = ShardMemory::device;
  request.group = 1;
  (void)store.create(request);
  request.variable = 2;
  request.group = 0;
  (void)store.create(request);
  auto entry = push_entry<float>(1, 0, {0}, 0, 1, {1});
  protocol::PushHeader header;
  std::memcpy(&header, entry.data(), sizeof header);
  header.rank = 2;
  std::memcpy(entry.data(), &header, sizeof header);
  apply_entry(store, entry);
  header = {.kind = protocol::PushKind::step, .variable = 1, .bytes = 64, .first_row = 1, .rank = 2};
  store.apply(header, {}, nullptr);
  EXPECT_EQ(steps, 1);
  apply_entry(store, push_entry<float>(2, 0, {0}, 0, 1, {1}));
  EXPECT_TRUE(store.unsettled());
  header = {.kind = protocol::PushKind::count, .variable = 1, .bytes = 64, .first_row = 1};
  store.apply(header, {}, nullptr);
  EXPECT_EQ(counted, 1);
}

TEST_F(DeviceShardTest, ThrowIfFailedReportsAnyGpuFailure) {
  if (!gpu::are_stand_ins()) GTEST_SKIP() << "only stand-ins fail on request";
  OneStore gpu(ShardMemory::device);
  gpu.create(one_shard<float>(1, {4, 1}, optimizers::SGD{}));
  EXPECT_NO_THROW(gpu.store().device()->throw_if_failed());
  apply_entry(gpu.store(), push_entry<float>(1, 0, {0}, 0, 1, {1}));
  const auto shard = std::dynamic_pointer_cast<const DeviceShard>(gpu.store().view(1, 0).shard);
  shard->table().gpu().stream().stand_in()->enqueue([] { throw Error(Code::internal, "no kernel"); });
  EXPECT_THROW(gpu.store().settle(), Error);
  EXPECT_TRUE(gpu.store().unsettled()) << "the push must not count as applied";
  EXPECT_THAT(refusal([&] { gpu.store().device()->throw_if_failed(); }, Code::internal),
              HasSubstr("no kernel"));
}

TEST_F(DeviceShardTest, AcceptsPushesFromTheMemoryOfItsOwnGpuOnly) {
  OneStore host(ShardMemory::host);
  host.create(one_shard<float>(1, {4, 1}, optimizers::SGD{}));
  EXPECT_FALSE(host.store().device()->reserve(1, 0, 0, 4));
  EXPECT_TRUE(host.store().device()->key(1, 0).empty());
  OneStore gpu(ShardMemory::device);
  gpu.create(one_shard<float>(1, {4, 1}, optimizers::SGD{}));
  EXPECT_TRUE(gpu.store().device()->reserve(1, 0, 0, 4));
  EXPECT_FALSE(gpu.store().device()->reserve(1, 0, 1, 4));
  EXPECT_FALSE(gpu.store().device()->key(1, 0).empty());
  gpu.store().create_group({.id = 1, .mode = protocol::GroupMode::synchronous, .workers = {2}});
  protocol::CreateShard grouped = one_shard<float>(2, {4, 1}, optimizers::SGD{});
  grouped.group = 1;
  gpu.create(grouped);
  EXPECT_FALSE(gpu.store().device()->reserve(2, 0, 0, 4)) << "an update group holds pushes in host memory";
  (void)refusal([&] { (void)gpu.store().device()->reserve(9, 0, 0, 1); }, Code::not_found);
}

TEST_F(DeviceShardTest, RejectsAGradientWithoutMemoryForItsCopy) {
  stream_.reset();
  if (!gpu::are_stand_ins()) GTEST_SKIP() << "would use all memory of a GPU";
  gpu::use_stand_ins(1, std::uint64_t{24} << 20);
  const gpu::Stream stream(0);
  gpu::Event made(0);
  OneStore gpu(ShardMemory::device);
  gpu.create(one_shard<float>(1, {100, 4}, optimizers::SGD{.learning_rate = 1}));
  gpu::Values<float> gradient(0, 400);
  gpu::fill_with_zeros(stream, gradient.data(), 400 * sizeof(float));
  made.record(stream);
  const auto push = [&] {
    protocol::PushHeader header{.kind = protocol::PushKind::dense, .variable = 1, .rows = 100};
    header.bytes = protocol::entry_bytes(header.kind, header.rows, 4 * sizeof(float));
    header.first_part = header.last_part = 1;
    if (!gpu.store().device()->reserve(1, 0, 0, header.rows)) ADD_FAILURE() << "the shard is on that GPU";
    gpu.store().device()->apply(header, {}, reinterpret_cast<const std::byte*>(gradient.data()), made);
  };
  {
    const gpu::Memory all_the_rest(0, gpu::info(0).free_bytes);
    EXPECT_THAT(refusal(push, Code::resource_exhausted), HasSubstr("GPU 0"));
    EXPECT_EQ(gpu.store().statistics().pushes, 0U);
  }
  push();
  EXPECT_EQ(gpu.store().statistics().rows_pushed, 100U);
}

}  // namespace
}  // namespace capstan::ps

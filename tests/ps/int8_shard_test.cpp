// int8_shard_test.cpp -- shards with int8 rows, compared with float32 shards that receive the same pushes.
// Tests: src/ps/update/int8_update.hpp
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "protocol/int8_rows.hpp"
#include "ps/push_entry.hpp"
#include "ps/shard/store.hpp"
#include "support/expect_error.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::ps {
namespace {

using Int8Numbers = std::vector<std::uint32_t>;
using Int8Floats = std::vector<float>;

constexpr std::uint64_t kInt8Rows = 40;
constexpr std::uint64_t kInt8Width = 37;

protocol::CreateShard int8_shard(std::uint32_t id, const Optimizer& optimizer, bool int8 = true,
                                 bool stochastic = true, std::uint64_t width = kInt8Width) {
  protocol::CreateShard request;
  request.variable = id;
  request.name = "v" + std::to_string(id);
  request.shape = {kInt8Rows, width};
  request.rows = kInt8Rows;
  request.optimizer = optimizer;
  request.initializer = initializers::normal(0, 1, 3);
  request.storage = {int8, int8 && stochastic};
  return request;
}

class Int8ShardTest : public testing::Test {
 protected:
  Int8Floats values(Store& store, std::uint32_t id, std::uint64_t width = kInt8Width) {
    Int8Numbers numbers(kInt8Rows);
    std::iota(numbers.begin(), numbers.end(), 0U);
    Int8Floats out(kInt8Rows * width);
    store.gather(store.view(id, 0), numbers, reinterpret_cast<std::byte*>(out.data()));
    return out;
  }
  Int8Floats values(std::uint32_t id) { return values(store_, id); }

  /// Returns a gradient for some rows, or for consecutive rows if `rows` is empty.
  static std::vector<std::byte> push_of(std::uint32_t id, const Int8Numbers& rows, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    Int8Floats gradient((rows.empty() ? 25 : rows.size()) * kInt8Width);
    for (float& g : gradient) g = uniform(random);
    return push_entry<float>(id, 0, rows, rows.empty() ? 9 : 0, kInt8Width, gradient);
  }
  static Int8Numbers rows_of_step(std::uint32_t step) {
    return step % 3 == 2 ? Int8Numbers{} : Int8Numbers{39, step % 7, 8 + step % 20};
  }

  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> fabric_ = hub_.open();
  Store store_{*fabric_, 1 << 20, 3};
};

// Before each push, the float32 shard gets the values of the int8 shard, so that errors do not add up. Slots
// are equal, since they stay float32.
TEST_F(Int8ShardTest, UpdatesOfAllOptimizersAreRoundedOnce) {
  const std::vector<Optimizer> optimizers{optimizers::SGD{.learning_rate = 0.3},
                                          optimizers::Adagrad{.learning_rate = 0.2},
                                          optimizers::Adam{.learning_rate = 0.1},
                                          optimizers::Momentum{.learning_rate = 0.1, .nesterov = true},
                                          optimizers::RMSProp{.learning_rate = 0.05},
                                          optimizers::AdamW{.learning_rate = 0.1},
                                          optimizers::FTRL{.learning_rate = 0.1, .l1 = 0.01}};
  std::uint32_t id = 0;
  for (const Optimizer& optimizer : optimizers) {
    for (const bool stochastic : {false, true}) {
      SCOPED_TRACE(protocol::describe(optimizer) + (stochastic ? " stochastic" : ""));
      const std::uint32_t narrow = ++id;
      const std::uint32_t wide = ++id;
      store_.create(int8_shard(narrow, optimizer, true, stochastic));
      store_.create(int8_shard(wide, optimizer, false));
      for (std::uint32_t step = 0; step < 9; ++step) {
        apply_entry(store_, with_op(push_entry<float>(wide, 0, {}, 0, kInt8Width, values(narrow)),
                                    protocol::RowOp::set));
        apply_entry(store_, push_of(narrow, rows_of_step(step), step));
        apply_entry(store_, push_of(wide, rows_of_step(step), step));
        const Int8Floats found = values(narrow), expected = values(wide);
        for (std::size_t row = 0; row < kInt8Rows; ++row) {
          const auto first = expected.begin() + static_cast<std::ptrdiff_t>(row * kInt8Width);
          const auto [low, high] = std::minmax_element(first, first + kInt8Width);
          const float bound = (*high - *low) / (stochastic ? 255 : 510) * 1.001F + 1e-6F;
          for (std::size_t i = row * kInt8Width; i < (row + 1) * kInt8Width; ++i)
            ASSERT_NEAR(found[i], expected[i], bound) << "step " << step << ", row " << row;
        }
      }
    }
  }
}

TEST_F(Int8ShardTest, InitialValuesAreRoundedToNearest) {
  store_.create(int8_shard(1, optimizers::SGD{}));
  store_.create(int8_shard(2, optimizers::SGD{}, false));
  const Int8Floats exact = values(2);
  std::vector<std::byte> converted(kInt8Rows * protocol::int8_row_bytes(kInt8Width));
  protocol::to_int8_rows(exact, kInt8Width, converted.data());
  Int8Floats expected(exact.size());
  protocol::from_int8_rows(converted, kInt8Width, expected.data());
  EXPECT_EQ(values(1), expected);
  EXPECT_NE(values(1), exact);
}

TEST_F(Int8ShardTest, SmallUpdatesTakeEffectOnAverageOnlyIfRoundedStochastically) {
  constexpr int kPushes = 2000;
  constexpr float kStep = 1;  // of a row from 0 to 255
  for (const bool stochastic : {false, true}) {
    const std::uint32_t id = stochastic ? 2 : 1;
    store_.create(int8_shard(id, optimizers::SGD{.learning_rate = -1}, true, stochastic));
    Int8Floats row(kInt8Width, 100.0F), gradient(kInt8Width, 0.02F * kStep);
    row[0] = gradient[0] = 0;
    row[1] = 255;
    gradient[1] = 0;
    apply_entry(store_, with_op(push_entry<float>(id, 0, {4}, 0, kInt8Width, row), protocol::RowOp::set));
    for (int i = 0; i < kPushes; ++i)
      apply_entry(store_, push_entry<float>(id, 0, {4}, 0, kInt8Width, gradient));
    const Int8Floats all = values(id);
    const auto first = all.begin() + 4 * kInt8Width;
    EXPECT_EQ(first[0], 0);
    EXPECT_EQ(first[1], 255);
    const double mean = std::accumulate(first + 2, first + kInt8Width, 0.0) / (kInt8Width - 2);
    if (stochastic) {
      // The sum of binomial numbers of steps; six standard deviations.
      const double deviation = std::sqrt(kPushes * 0.02 * 0.98 / (kInt8Width - 2));
      EXPECT_NEAR(mean, 100 + kPushes * 0.02, 6 * deviation + 0.1);
    } else {
      EXPECT_EQ(mean, 100) << "updates of less than half a step are lost";
    }
  }
}

TEST_F(Int8ShardTest, EqualPushesHaveEqualResultsWithAnyNumberOfThreads) {
  const std::unique_ptr<transport::Fabric> other = hub_.open();
  Store threads(
      *other, 1 << 20, 3, [](std::uint32_t, std::uint64_t) {}, [](std::uint32_t, std::uint64_t) {}, nullptr,
      nullptr, {}, 4);
  constexpr std::uint64_t kWide = 500;  // so that pushes are divided among threads
  for (Store* store : {&store_, &threads}) {
    store->create(int8_shard(1, optimizers::Adam{.learning_rate = 0.1}, true, true, kWide));
    for (std::uint32_t step = 0; step < 6; ++step) {
      Int8Numbers rows(30);
      std::iota(rows.begin(), rows.end(), step);
      if (step % 2 == 1) rows.clear();
      Int8Floats gradient(30 * kWide);
      for (std::size_t i = 0; i < gradient.size(); ++i)
        gradient[i] = std::sin(static_cast<float>(i + step * 1000));
      apply_entry(*store, push_entry<float>(1, 0, rows, rows.empty() ? 5 : 0, kWide, gradient));
    }
  }
  EXPECT_EQ(values(store_, 1, kWide), values(threads, 1, kWide));
}

TEST_F(Int8ShardTest, RowOperationsAndPartsOfRowsAreOfFloats) {
  store_.create(int8_shard(1, optimizers::SGD{}));
  Int8Floats row(kInt8Width);
  std::iota(row.begin(), row.end(), 1.0F);
  row.back() = 256;  // steps of 1
  apply_entry(store_, with_op(push_entry<float>(1, 0, {3}, 0, kInt8Width, row), protocol::RowOp::set));
  apply_entry(store_, with_op(push_entry<float>(1, 0, {3}, 0, kInt8Width, row), protocol::RowOp::add));
  Int8Floats all = values(1);
  for (std::size_t i = 0; i < kInt8Width; ++i) ASSERT_EQ(all[3 * kInt8Width + i], 2 * row[i]);
  const auto view = store_.view(1, 0);
  const auto* const bytes = reinterpret_cast<const std::byte*>(all.data());
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{5}, 3 * view.row_bytes - 2}) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{150}, std::size_t{1000}}) {
      std::vector<std::byte> part(count);
      store_.gather(view, first, part);
      ASSERT_TRUE(std::equal(part.begin(), part.end(), bytes + first)) << first << ' ' << count;
    }
  }
}

TEST_F(Int8ShardTest, RejectsOtherDtypesMemoryAndShortRows) {
  protocol::CreateShard request = int8_shard(1, optimizers::SGD{});
  request.shape = {kInt8Rows, 2};
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { store_.create(request); }),
              testing::HasSubstr("2 elements"));
  request = int8_shard(1, optimizers::SGD{});
  request.dtype = DType::float64;
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { store_.create(request); }),
              testing::HasSubstr("float64"));
  request = int8_shard(1, optimizers::SGD{});
  request.memory = ShardMemory::device;
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { store_.create(request); }), testing::HasSubstr("GPU"));
}

// A missing key has the row with which it would be added.
TEST_F(Int8ShardTest, TablesStoreAndReadInt8Rows) {
  const auto table_of = [](std::uint32_t id, bool int8) {
    protocol::CreateShard request = int8_shard(id, optimizers::Adagrad{.learning_rate = 0.5}, int8, false);
    request.shape = {100'000, kInt8Width};
    request.rows = 100'000;
    request.table = true;
    return request;
  };
  store_.create(table_of(1, true));
  store_.create(table_of(2, false));
  const std::vector<std::int64_t> keys{5, -9, 1234567};
  const auto read = [&](std::uint32_t id) {
    Int8Floats out(keys.size() * kInt8Width);
    store_.gather_keys(store_.view(id, 0), keys, MissingKeys::initial,
                       reinterpret_cast<std::byte*>(out.data()));
    return out;
  };
  const Int8Floats missing = read(1);
  EXPECT_NE(missing, read(2));
  for (const std::uint32_t id : {1U, 2U})
    apply_entry(store_, keyed_entry<float>(id, keys, {}, protocol::RowOp::insert));
  EXPECT_EQ(read(1), missing);
  for (const std::uint32_t id : {1U, 2U}) {
    Int8Floats gradient(keys.size() * kInt8Width);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = std::sin(static_cast<float>(i));
    apply_entry(store_, keyed_entry<float>(id, keys, gradient));
  }
  const Int8Floats found = read(1), expected = read(2);
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 0.03);
  const auto bytes = [&](std::uint32_t id) { return store_.table_statistics({id, 0}).row_bytes; };
  EXPECT_EQ(bytes(2) - bytes(1), 4 * (3 * kInt8Width - 8)) << "of three rows and the default row";
}

}  // namespace
}  // namespace capstan::ps

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
#include "ps/durability/store_snapshot.hpp"
#include "ps/journal_memory.hpp"
#include "ps/push_entry.hpp"
#include "ps/shard/host_shard.hpp"
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

// A message has a part of a wide row. Parts are converted in pieces.
TEST_F(Int8ShardTest, PartsOfWideRowsAreThoseOfCompleteRows) {
  constexpr std::uint64_t kWide = 5000;
  store_.create(int8_shard(1, optimizers::SGD{}, true, true, kWide));
  const Int8Floats all = values(store_, 1, kWide);
  const auto* const bytes = reinterpret_cast<const std::byte*>(all.data());
  const std::uint64_t row_bytes = kWide * sizeof(float);
  for (const std::uint64_t first :
       {std::uint64_t{0}, std::uint64_t{4096}, row_bytes - 6, 2 * row_bytes + 9}) {
    for (const std::size_t count : {std::size_t{4096}, std::size_t{4099}, std::size_t{50'000}}) {
      std::vector<std::byte> part(count);
      store_.gather(store_.view(1, 0), first, part);
      ASSERT_TRUE(std::equal(part.begin(), part.end(), bytes + first)) << first << ' ' << count;
    }
  }
}

TEST_F(Int8ShardTest, RowOperationsEqualThoseOfRoundedRows) {
  using protocol::RowOp;
  std::uint32_t id = 0;
  for (const RowOp op : {RowOp::add, RowOp::sub, RowOp::mul, RowOp::div, RowOp::min, RowOp::max}) {
    const std::uint32_t narrow = ++id, wide = ++id;
    store_.create(int8_shard(narrow, optimizers::SGD{}));
    store_.create(int8_shard(wide, optimizers::SGD{}, false));
    apply_entry(store_, with_op(push_entry<float>(wide, 0, {}, 0, kInt8Width, values(narrow)), RowOp::set));
    for (const std::uint32_t variable : {narrow, wide}) {
      apply_entry(store_, with_op(push_of(variable, {39, 4}, 1), op));
      apply_entry(store_, with_op(push_of(variable, {}, 2), op));
    }
    const Int8Floats expected = values(wide);
    std::vector<std::byte> converted(kInt8Rows * protocol::int8_row_bytes(kInt8Width));
    protocol::to_int8_rows(expected, kInt8Width, converted.data());
    Int8Floats rounded(expected.size());
    protocol::from_int8_rows(converted, kInt8Width, rounded.data());
    EXPECT_EQ(values(narrow), rounded) << static_cast<int>(op);
    EXPECT_NE(rounded, expected);
  }
}

TEST_F(Int8ShardTest, StepOfAGroupIsRoundedOnce) {
  store_.create_group({.id = 1, .mode = protocol::GroupMode::synchronous, .workers = {1, 2}});
  protocol::CreateShard grouped = int8_shard(1, optimizers::Adagrad{.learning_rate = 0.5}, true, false);
  grouped.group = 1;
  store_.create(grouped);
  store_.create(int8_shard(2, optimizers::Adagrad{.learning_rate = 0.5}, true, false));
  const Int8Floats before = values(1);
  const auto of_rank = [](std::vector<std::byte> entry, std::int32_t rank) {
    protocol::PushHeader header;
    std::memcpy(&header, entry.data(), sizeof header);
    header.rank = static_cast<std::uint32_t>(rank);
    std::memcpy(entry.data(), &header, sizeof header);
    return entry;
  };
  for (const std::int32_t rank : {1, 2}) apply_entry(store_, of_rank(push_of(1, {4, 30}, 5), rank));
  EXPECT_EQ(values(1), before);
  for (const std::uint32_t rank : {1U, 2U}) {
    protocol::PushHeader step;
    step.kind = protocol::PushKind::step;
    step.variable = 1;
    step.rank = rank;
    step.first_row = 1;
    step.bytes = sizeof step;
    store_.apply(step, {}, nullptr);
  }
  apply_entry(store_, push_of(2, {4, 30}, 5));  // the average of the two pushes
  EXPECT_EQ(values(1), values(2));
  EXPECT_NE(values(1), before);
}

/// A shard of wide rows without a store, with a journal and any number of threads.
class Int8ShardWithJournal {
 public:
  static constexpr std::uint64_t kWide = 600;

  explicit Int8ShardWithJournal(int threads)
      : shard_(int8_shard(1, optimizers::SGD{.learning_rate = 0.1}, true, true, kWide),
               protocol::ShardLocation{0, 0, kInt8Rows, 0, 64, 0, 0},
               Shard::Words::at(reinterpret_cast<std::byte*>(line_)), {values_.data()},
               {.parts = std::make_shared<UpdateParts>(threads), .journal = &journal_}) {
    shard_.initialize();
  }
  void push(const Int8Numbers& rows, const Int8Floats& gradient) {
    const auto entry = push_entry<float>(1, 0, rows, 0, kWide, gradient);
    protocol::PushHeader header;
    std::memcpy(&header, entry.data(), sizeof header);
    journal_.begin(header, 0, shard_.steps(), 0);
    shard_.apply(header, rows,
                 entry.data() + sizeof header + protocol::number_bytes(header.kind, rows.size()));
  }
  void undo() { shard_.undo(journal_.last().steps); }
  const std::vector<std::byte>& stored() const { return values_; }

 private:
  std::vector<std::byte> values_ = std::vector<std::byte>(kInt8Rows * protocol::int8_row_bytes(kWide));
  alignas(64) std::uint64_t line_[8] = {};
  JournalMemory memory_{1 << 20};
  Journal journal_ = memory_.open();
  HostShard shard_;
};

TEST(Int8ShardJournal, UndoesRepeatedRowsWithAnyNumberOfThreads) {
  Int8ShardWithJournal one(1), four(4);
  Int8Numbers rows;  // 60 rows, some of them several times
  for (std::uint32_t i = 0; i < 60; ++i) rows.push_back(i * i % kInt8Rows);
  Int8Floats gradient(rows.size() * Int8ShardWithJournal::kWide);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = std::sin(static_cast<float>(i));
  for (Int8ShardWithJournal* shard : {&one, &four}) {
    shard->push(rows, gradient);
    const std::vector<std::byte> before = shard->stored();
    shard->push(rows, gradient);
    const std::vector<std::byte> after = shard->stored();
    EXPECT_NE(after, before);
    shard->undo();
    EXPECT_EQ(shard->stored(), before);
    shard->push(rows, gradient);
    EXPECT_EQ(shard->stored(), after) << "the random bits depend on the step only";
  }
  EXPECT_EQ(one.stored(), four.stored());
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

protocol::CreateShard int8_table(std::uint64_t rows = 100'000) {
  protocol::CreateShard request = int8_shard(1, optimizers::SGD{.learning_rate = 1});
  request.shape = {rows, kInt8Width};
  request.rows = rows;
  request.table = true;
  return request;
}

/// Returns rows whose elements are multiples of `scale`, which are exact.
Int8Floats exact_rows(std::size_t count, float scale) {
  Int8Floats row(kInt8Width);
  std::iota(row.begin(), row.end(), 0.0F);
  row.back() = 255;
  Int8Floats all;
  for (std::size_t i = 0; i < count; ++i) all.insert(all.end(), row.begin(), row.end());
  for (float& value : all) value *= scale;
  return all;
}

// Keys that are added during a save take rows of erased and evicted keys.
TEST_F(Int8ShardTest, SaveOfATableHasRowsThatAreReusedMeanwhile) {
  constexpr std::uint64_t kKeys = 50;
  for (const bool evicts : {false, true}) {
    SCOPED_TRACE(evicts ? "evict" : "erase");
    const std::unique_ptr<transport::Fabric> fabric = hub_.open();
    Store store(*fabric, 1 << 20, 0);
    protocol::CreateShard request = int8_table(kKeys + 1 + (evicts ? protocol::kSpareRows : 0));
    if (evicts) request.policy.when_full = WhenFull::evict_least_recent;
    store.create(request);
    std::vector<std::int64_t> keys(kKeys), more(20);
    std::iota(keys.begin(), keys.end(), 1);
    std::iota(more.begin(), more.end(), 1000);
    apply_entry(store, keyed_entry<float>(1, keys, exact_rows(kKeys, 1), protocol::RowOp::set));
    StoreSnapshot snapshot(store);
    ASSERT_TRUE(snapshot.advance());
    if (!evicts) {
      const std::vector<std::int64_t> erased(keys.begin(), keys.begin() + 20);
      apply_entry(store, keyed_entry<float>(1, erased, {}, protocol::RowOp::erase));
    }
    // Rows of evicted keys are free from the next entry on.
    for (int i = 0; i < (evicts ? 40 : 1); ++i) {
      apply_entry(store, keyed_entry<float>(1, more, exact_rows(more.size(), 2), protocol::RowOp::set));
      if (evicts) std::for_each(more.begin(), more.end(), [](std::int64_t& key) { key += 20; });
    }
    if (evicts) {
      EXPECT_GT(store.table_statistics({1, 0}).evicted, kKeys);
    }
    const auto arrays = snapshot.parts(1).at(0);
    const std::uint64_t rows = arrays[0].rows;
    Int8Floats values(rows * kInt8Width);
    std::vector<std::uint32_t> states(rows);
    arrays[0].read(0, rows, reinterpret_cast<std::byte*>(values.data()));
    arrays.back().read(0, rows, reinterpret_cast<std::byte*>(states.data()));
    const Int8Floats expected = exact_rows(1, 1);
    std::uint64_t saved = 0;
    for (std::uint64_t row = 0; row < rows; ++row) {
      if (states[row] == 0) continue;
      ++saved;
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * kInt8Width);
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), first)) << row;
    }
    EXPECT_EQ(saved, kKeys);
  }
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

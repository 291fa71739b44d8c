// table_checkpoint_test.cpp -- dynamic tables in checkpoints: full and incremental, by any number of ps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <vector>

#include "capstan/checkpoint.hpp"
#include "capstan/dynamic_table.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/temporary_directory.hpp"
#include "protocol/table_layout.hpp"
#include "strategy/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using Keys = std::vector<std::int64_t>;
using Floats = std::vector<float>;

constexpr std::int64_t kDim = 3;

struct TableProgram {
  explicit TableProgram(int ps)
      : ranks({.ranks = 2 + ps, .flags = {{"ps", std::to_string(ps)}}}), strategy(ranks.cluster()) {}
  DynamicTable<float>& make(std::uint64_t max_keys = 100'000) {
    const auto scope = strategy.scope();
    table.emplace("user", dim, initializers::normal(0, 1, 3),
                  TableOptions{.optimizer = optimizers::Adam{.learning_rate = 0.1},
                               .missing = MissingKeys::default_row,
                               .max_keys = max_keys,
                               .stochastic_rounding = int8,
                               .int8_rows = int8});
    return *table;
  }
  void push(const Keys& keys) const {
    table->push(keys, Floats(keys.size() * kDim, 0.25F));
    table->flush();
  }
  std::map<std::int64_t, Floats> rows() const {
    std::map<std::int64_t, Floats> all;
    table->export_rows([&](std::span<const std::int64_t> keys, const Rows<float>& some) {
      for (std::size_t i = 0; i < keys.size(); ++i) all[keys[i]] = Floats(some[i].begin(), some[i].end());
    });
    return all;
  }

  RankThreads ranks;
  ParameterServerStrategy strategy;
  std::optional<DynamicTable<float>> table;
  bool int8 = false;
  std::int64_t dim = kDim;
};

Keys some_keys(unsigned seed, std::size_t count, std::int64_t below) {
  std::mt19937_64 random(seed);
  Keys keys(count);
  for (auto& key : keys) key = static_cast<std::int64_t>(random() % below) * 1'000'000'007 - 5;
  return keys;
}

constexpr std::uint64_t kInt8Dim = 16;

TEST(TableCheckpoint, Int8RowsAreRestoredExactlyByAnyNumberOfPs) {
  const io::TemporaryDirectory directory;
  TableProgram first(2);
  first.int8 = true;
  first.dim = kInt8Dim;
  first.make();
  CheckpointManager manager(first.strategy, {.directory = directory.path()});
  for (unsigned step = 1; step <= 3; ++step) {
    const Keys keys = some_keys(step, 2000, 3000);
    Floats gradient(keys.size() * kInt8Dim);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i % 5) - 2;
    first.table->push(keys, gradient);
    first.table->flush();
    (void)manager.save(step, "null", {.incremental = true});
  }
  // Keys, states, values and two slots of all keys, and of the default row of each ps.
  constexpr std::uint64_t kRowBytes = 8 + 4 + (8 + kInt8Dim) + 2 * 4 * kInt8Dim;
  EXPECT_EQ(first.table->statistics().row_bytes, (first.table->size() + 2) * kRowBytes);
  for (int readers = 1; readers <= 3; ++readers) {
    TableProgram second(readers);
    second.int8 = true;
    second.dim = kInt8Dim;
    second.make();
    CheckpointManager restoring(second.strategy, {.directory = directory.path()});
    EXPECT_EQ(restoring.restore_latest(), std::optional<std::int64_t>(3));
    EXPECT_EQ(second.rows(), first.rows()) << readers;
  }
}

TEST(TableCheckpoint, IsRestoredByAnyNumberOfPs) {
  for (int writers = 1; writers <= 3; ++writers) {
    const io::TemporaryDirectory directory;
    TableProgram first(writers);
    first.make();
    first.push(some_keys(1, 3000, 5000));
    first.push(some_keys(2, 3000, 5000));
    first.table->erase(some_keys(3, 500, 5000));
    first.table->set_default_row(Floats{7, 8, 9});
    const auto saved = first.rows();
    {
      CheckpointManager manager(first.strategy, {.directory = directory.path()});
      (void)manager.save(1);
    }
    first.push(some_keys(4, 1000, 5000));
    const auto trained = first.rows();
    for (int readers = 1; readers <= 3; ++readers) {
      SCOPED_TRACE(std::to_string(writers) + " ps wrote, " + std::to_string(readers) + " read");
      TableProgram second(readers);
      second.make();
      second.push(some_keys(9, 100, 90'000));  // overwritten by the restore
      CheckpointManager manager(second.strategy, {.directory = directory.path()});
      EXPECT_EQ(manager.restore_latest(), 1);
      EXPECT_EQ(second.rows(), saved);
      EXPECT_EQ(second.table->size(), saved.size());
      EXPECT_EQ(second.table->lookup(Keys{-1}).values, (Floats{7, 8, 9}));
      second.push(some_keys(4, 1000, 5000));  // depends on Adam's moments and steps
      EXPECT_EQ(second.rows(), trained);
    }
  }
}

TEST(TableCheckpoint, IncrementsAreExactWhileTheTableGrowsAndShrinks) {
  const io::TemporaryDirectory directory;
  TableProgram first(2);
  first.make();
  CheckpointManager manager(first.strategy, {.directory = directory.path(), .max_to_keep = 0});
  std::vector<std::map<std::int64_t, Floats>> states;
  std::int64_t step = 0;
  const auto save = [&] {
    states.push_back(first.rows());
    ++step;
    return manager.save(step, "null", SaveOptions{.incremental = step != 5});
  };
  first.push(some_keys(1, 300, 5000));
  (void)save();
  first.push(some_keys(1, 10, 5000));
  const auto few = io::CheckpointReader(save());
  EXPECT_GT(*few.variable("user/part_0").changed + *few.variable("user/part_1").changed, 0U);
  EXPECT_LE(*few.variable("user/part_0").changed + *few.variable("user/part_1").changed, 10U);
  first.table->erase(some_keys(1, 100, 5000));
  first.push(some_keys(5, 50, 5000));  // reuses rows of erased keys
  (void)save();
  first.push(some_keys(6, 4000, 50'000));  // more rows than the base has
  (void)save();
  first.push(some_keys(7, 10, 5000));
  (void)save();  // full, without a mark
  first.push(some_keys(8, 10, 5000));
  (void)save();
  for (const int readers : {2, 3}) {
    TableProgram second(readers);
    second.make();
    Checkpoint checkpoint(second.strategy);
    for (std::size_t i = 0; i < states.size(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i + 1));
      (void)checkpoint.read(directory.path() / ("checkpoint-0000000" + std::to_string(i + 1)));
      EXPECT_EQ(second.rows(), states[i]);
    }
  }
}

TEST(TableCheckpoint, FillsTablesThatAreCreatedLater) {
  const io::TemporaryDirectory directory;
  TableProgram first(2);
  first.make();
  first.push(some_keys(1, 300, 5000));
  CheckpointManager(first.strategy, {.directory = directory.path()}).save(1);
  TableProgram second(3);
  CheckpointManager manager(second.strategy, {.directory = directory.path()});
  EXPECT_EQ(manager.restore_latest({.allow_extra = true}), 1);
  EXPECT_THAT(manager.unmatched(), testing::SizeIs(2)) << "two parts";
  second.make();
  EXPECT_EQ(second.rows(), first.rows());
  EXPECT_THAT(manager.unmatched(), testing::IsEmpty());
}

TEST(TableCheckpoint, RejectsTablesThatDiffer) {
  const io::TemporaryDirectory directory;
  TableProgram first(1);
  first.make();
  first.push({1, 2, 3});
  CheckpointManager(first.strategy, {.directory = directory.path()}).save(1);
  TableProgram second(1);
  {
    const auto scope = second.strategy.scope();
    const DynamicTable<float> narrower("user", 2, {}, {.optimizer = optimizers::Adam{}});
    CheckpointManager manager(second.strategy, {.directory = directory.path()});
    expect_error_naming(Code::failed_precondition, {"\"user\"", "expected (1024, 2)"},
                        [&] { (void)manager.restore_latest(); });
  }
  TableProgram third(1);
  const auto scope = third.strategy.scope();
  const Variable<float> variable("user", Shape{3, 3}, {}, {.optimizer = optimizers::Adam{}});
  CheckpointManager manager(third.strategy, {.directory = directory.path()});
  expect_error_naming(Code::failed_precondition, {"\"user\"", "dynamic table"},
                      [&] { (void)manager.restore_latest(); });
}

TEST(TableCheckpoint, RejectsMoreKeysThanFit) {
  const io::TemporaryDirectory directory;
  TableProgram first(1);
  first.make();
  first.push(some_keys(1, 300, 5000));
  CheckpointManager(first.strategy, {.directory = directory.path()}).save(1);
  TableProgram second(1);
  second.make(10);
  CheckpointManager manager(second.strategy, {.directory = directory.path()});
  expect_error_naming(Code::resource_exhausted, {"\"user\"", "max_keys"},
                      [&] { (void)manager.restore_latest(); });
}

/// Returns keys of one sub-index of the only shard.
Keys keys_of_one_sub_index(std::size_t count) {
  Keys keys;
  for (std::int64_t key = 0; keys.size() < count; ++key) {
    if (protocol::hash_of(key) % protocol::TableHeader::kSubIndexes == 0) keys.push_back(key);
  }
  return keys;
}

// A table with a larger index takes these keys; the smaller one has rows for them, but no part of its index.
TEST(TableCheckpoint, RejectsMoreKeysThanFitAPartOfTheIndex) {
  const io::TemporaryDirectory directory;
  const Keys keys = keys_of_one_sub_index(200);
  TableProgram first(1);
  first.make(100'000);
  first.push(keys);
  ASSERT_EQ(first.table->size(), keys.size());
  CheckpointManager(first.strategy, {.directory = directory.path()}).save(1);
  TableProgram second(1);
  second.make(1000);
  CheckpointManager manager(second.strategy, {.directory = directory.path()});
  expect_error_naming(Code::resource_exhausted, {"\"user\"", "max_keys"},
                      [&] { (void)manager.restore_latest(); });
  const std::uint64_t restored = second.table->size();
  EXPECT_LT(restored, keys.size());
  second.push(keys);
  EXPECT_EQ(second.table->statistics().refused, keys.size() - restored);
  EXPECT_EQ(second.rows().size(), restored) << "the table stays usable";
}

}  // namespace
}  // namespace capstan

// table_rewrite_test.cpp -- a program restores dynamic tables that `capstan checkpoint compact` and `reshard`
// wrote.
// Tests: launch/checkpoint/compact.cpp
// Tests: launch/checkpoint/reshard.cpp
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "capstan/checkpoint.hpp"
#include "capstan/dynamic_table.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/temporary_directory.hpp"
#include "launch/checkpoint/commands.hpp"
#include "protocol/table_layout.hpp"
#include "strategy/strategy.hpp"
#include "support/rank_threads.hpp"

namespace capstan::launch::checkpoint {
namespace {

using Keys = std::vector<std::int64_t>;
using Floats = std::vector<float>;

constexpr std::uint64_t kTableDim = 3;

/// A program whose table evicts keys.
struct TableProgram {
  explicit TableProgram(int ps)
      : ranks({.ranks = 2 + ps, .flags = {{"ps", std::to_string(ps)}}}), strategy(ranks.cluster()) {
    const auto scope = strategy.scope();
    table.emplace("user", kTableDim, initializers::normal(0, 1, 3),
                  TableOptions{.optimizer = optimizers::Adam{.learning_rate = 0.1},
                               .missing = MissingKeys::default_row,
                               .max_keys = 600,
                               .when_full = WhenFull::evict_least_recent});
  }
  void push(unsigned seed, std::size_t count) const {
    std::mt19937_64 random(seed);
    Keys keys(count);
    Floats gradient;
    for (auto& key : keys) {
      key = static_cast<std::int64_t>(random() % 3000) * 1'000'000'007 - 5;
      for (std::uint64_t i = 0; i < kTableDim; ++i) gradient.push_back(static_cast<float>(random() % 9) - 4);
    }
    table->push(keys, gradient);
    table->flush();
  }
  void erase_some() const {
    EXPECT_GT(table->erase_if([](std::int64_t key, std::span<const float>) { return key % 7 == 0; }), 0U);
  }
  /// Saves all rows to a new directory. Returns the path of the checkpoint.
  std::filesystem::path save_all(const std::filesystem::path& directory) {
    return CheckpointManager(strategy, {.directory = directory}).save(1);
  }

  RankThreads ranks;
  ParameterServerStrategy strategy;
  std::optional<DynamicTable<float>> table;
};

/// Rows of a saved table by key: values, slots, and the number of pushes.
using SavedTable = std::map<std::int64_t, std::vector<float>>;

SavedTable read_table(const std::filesystem::path& checkpoint) {
  const io::CheckpointReader reader(checkpoint);
  SavedTable out;
  for (const io::VariableInfo& part : reader.variables()) {
    const std::uint64_t rows = part.shape.front();
    const auto read = [&]<class T>(const char* component, std::uint64_t width, T) {
      std::vector<T> values(rows * width);
      reader.read_rows(part.name, component, 0, rows, values.data());
      return values;
    };
    const auto keys = read("table_key", 1, std::int64_t{});
    const auto states = read("table_state", 1, std::uint32_t{});
    const std::vector<Floats> arrays{read("value", kTableDim, 0.0F), read("m", kTableDim, 0.0F),
                                     read("v", kTableDim, 0.0F)};
    for (std::uint64_t row = 0; row < rows; ++row) {
      if ((states[row] & protocol::kRowInUse) == 0) continue;
      std::vector<float>& all = out[keys[row]];
      EXPECT_TRUE(all.empty()) << "key " << keys[row] << " has two rows";
      for (const Floats& array : arrays)
        all.insert(all.end(), array.data() + row * kTableDim, array.data() + (row + 1) * kTableDim);
      all.push_back(static_cast<float>(states[row] >> 24 & 127));
    }
  }
  return out;
}

std::int64_t largest_steps(const std::filesystem::path& checkpoint) {
  const io::CheckpointReader reader(checkpoint);
  std::int64_t steps = 0;
  for (const io::VariableInfo& part : reader.variables()) steps = std::max(steps, part.steps);
  return steps;
}

/// A full checkpoint and an increment of a table that evicts and erases keys before and after the full one.
class TableRewriteTest : public testing::Test {
 protected:
  TableRewriteTest() {
    first_.table->set_default_row(Floats{7, 8, 9});
    for (unsigned push = 0; push < 6; ++push) first_.push(push, 400);
    first_.erase_some();
    CheckpointManager manager(first_.strategy, {.directory = run_, .max_to_keep = 0});
    (void)manager.save(1, "null", {.incremental = true});
    expected_of_base_ = read_table(first_.save_all(scratch_.path() / "base"));
    for (unsigned push = 10; push < 13; ++push) first_.push(push, 50);
    first_.erase_some();
    first_.push(13, 30);  // reuses rows of erased keys
    increment_ = manager.save(2, "null", {.incremental = true});
    expected_ = read_table(first_.save_all(scratch_.path() / "expected"));
  }
  void expect_restored_by_any_number_of_ps(const std::filesystem::path& directory) {
    for (int ps = 1; ps <= 3; ++ps) {
      SCOPED_TRACE(std::to_string(ps) + " ps");
      TableProgram second(ps);
      CheckpointManager manager(second.strategy, {.directory = directory});
      EXPECT_EQ(manager.restore_latest(), 2);
      EXPECT_EQ(second.table->lookup(Keys{-1}).values, (Floats{7, 8, 9}));
      const auto saved =
          second.save_all(scratch_.path() / (directory.filename().string() + std::to_string(ps)));
      EXPECT_EQ(read_table(saved), expected_);
      EXPECT_EQ(largest_steps(saved), largest_steps(increment_));
    }
  }

  io::TemporaryDirectory scratch_;
  std::filesystem::path run_ = scratch_.path() / "run";
  TableProgram first_{2};
  std::filesystem::path increment_;
  SavedTable expected_of_base_, expected_;
};

TEST_F(TableRewriteTest, CompactKeepsKeysRowsAndSlots) {
  EXPECT_GT(first_.table->statistics().evicted, 0U);
  EXPECT_NE(expected_, expected_of_base_);
  {
    const io::CheckpointReader reader(increment_);
    ASSERT_NE(reader.base(), nullptr);
    for (const io::VariableInfo& part : reader.variables()) EXPECT_LT(*part.changed, 400U) << part.name;
  }
  ASSERT_EQ(compact({.verb = Verb::compact, .from = run_}), 0);
  std::filesystem::remove_all(run_ / "checkpoint-00000001");
  EXPECT_EQ(io::CheckpointReader(increment_).base(), nullptr);
  EXPECT_EQ(read_table(increment_), expected_);
  expect_restored_by_any_number_of_ps(run_);
}

TEST_F(TableRewriteTest, ReshardKeepsKeysRowsAndSlots) {
  for (const std::int64_t parts : {1, 3, 5}) {
    SCOPED_TRACE(std::to_string(parts) + " parts");
    const auto out = scratch_.path() / ("parts" + std::to_string(parts));
    ASSERT_EQ(reshard({.verb = Verb::reshard, .from = increment_, .to = out, .parts = parts}), 0);
    const auto directory = out / "checkpoint-00000002";
    EXPECT_EQ(io::CheckpointReader(directory).parts().size(), static_cast<std::size_t>(parts));
    EXPECT_EQ(read_table(directory), expected_);
    expect_restored_by_any_number_of_ps(out);
  }
}

}  // namespace
}  // namespace capstan::launch::checkpoint

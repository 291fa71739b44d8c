// int8_checkpoint_test.cpp -- checkpoints that are restored into rows of another storage: float32 and int8.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "capstan/checkpoint.hpp"
#include "capstan/dynamic_table.hpp"
#include "io/temporary_directory.hpp"
#include "protocol/int8_rows.hpp"
#include "strategy/strategy.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using StorageFloats = std::vector<float>;

constexpr std::int64_t kStorageRows = 50;
constexpr std::int64_t kStorageDim = 16;

/// A variable and a table with the same rows, whose optimizers have slots.
struct StorageProgram {
  StorageProgram(int ps, bool int8)
      : ranks({.ranks = 2 + ps, .flags = {{"ps", std::to_string(ps)}}}), strategy(ranks.cluster()) {
    const auto scope = strategy.scope();
    const optimizers::Adam adam{.learning_rate = 0.1};
    variable.emplace("v", Shape{kStorageRows, kStorageDim}, initializers::normal(0, 1, 4),
                     VariableOptions{.optimizer = adam, .int8_rows = int8});
    table.emplace("t", kStorageDim, initializers::normal(0, 1, 5),
                  TableOptions{.optimizer = adam, .max_keys = 1000, .int8_rows = int8});
    for (std::int64_t id = 0; id < kStorageRows; ++id) ids.push_back(id);
  }
  void push() {
    StorageFloats gradient(kStorageRows * kStorageDim);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = std::sin(static_cast<float>(i));
    variable->push(ids, gradient);
    table->push(ids, gradient);
    variable->flush();
    table->flush();
  }
  StorageFloats rows_of_variable() const { return variable->pull(); }
  StorageFloats rows_of_table() const { return table->lookup(ids).values; }

  RankThreads ranks;
  ParameterServerStrategy strategy;
  std::optional<Variable<float>> variable;
  std::optional<DynamicTable<float>> table;
  std::vector<std::int64_t> ids;
};

StorageFloats rounded_to_int8(const StorageFloats& rows) {
  constexpr auto kWidth = static_cast<std::uint64_t>(kStorageDim);
  std::vector<std::byte> stored(rows.size() / kWidth * protocol::int8_row_bytes(kWidth));
  protocol::to_int8_rows(rows, kWidth, stored.data());
  StorageFloats rounded(rows.size());
  protocol::from_int8_rows(stored, kWidth, rounded.data());
  return rounded;
}

TEST(Int8Checkpoint, FloatRowsAreRoundedOnceWhenRestoredAsInt8) {
  const io::TemporaryDirectory directory;
  StorageProgram saved(2, false);
  saved.push();
  CheckpointManager(saved.strategy, {.directory = directory.path()}).save(1);
  for (const int ps : {1, 2}) {
    StorageProgram restored(ps, true);
    EXPECT_EQ(CheckpointManager(restored.strategy, {.directory = directory.path()}).restore_latest(), 1);
    EXPECT_EQ(restored.rows_of_variable(), rounded_to_int8(saved.rows_of_variable()));
    EXPECT_EQ(restored.rows_of_table(), rounded_to_int8(saved.rows_of_table()));
    EXPECT_NE(restored.rows_of_variable(), saved.rows_of_variable());
    EXPECT_NE(restored.rows_of_table(), saved.rows_of_table());
  }
}

TEST(Int8Checkpoint, Int8RowsAreExactWhenRestoredAsFloat) {
  const io::TemporaryDirectory directory;
  StorageProgram saved(2, true);
  saved.push();
  CheckpointManager(saved.strategy, {.directory = directory.path()}).save(1);
  for (const int ps : {1, 2}) {
    StorageProgram restored(ps, false);
    EXPECT_EQ(CheckpointManager(restored.strategy, {.directory = directory.path()}).restore_latest(), 1);
    EXPECT_EQ(restored.rows_of_variable(), saved.rows_of_variable());
    EXPECT_EQ(restored.rows_of_table(), saved.rows_of_table());
    // The next update rounds the rows again. Slots and steps are exact.
    StorageProgram same(ps, true);
    EXPECT_EQ(CheckpointManager(same.strategy, {.directory = directory.path()}).restore_latest(), 1);
    restored.push();
    same.push();
    EXPECT_EQ(same.rows_of_variable(), rounded_to_int8(restored.rows_of_variable()));
    EXPECT_EQ(same.rows_of_table(), rounded_to_int8(restored.rows_of_table()));
  }
}

}  // namespace
}  // namespace capstan

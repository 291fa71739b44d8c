// incremental_save_test.cpp -- saves of changed rows, and their exact restore after any sequence of saves.
#include <gtest/gtest.h>

#include <random>

#include "capstan/checkpoint.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/temporary_directory.hpp"
#include "strategy/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

/// Tables of floats and of int8 rows whose optimizer has slots and a step count, a table of integers, and a
/// dense variable.
struct SavingProgram {
  explicit SavingProgram(int ps)
      : ranks({.ranks = 2 + ps, .flags = {{"ps", std::to_string(ps)}}}),
        strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{ps}}),
        scope(std::in_place, &strategy.implementation()),
        table("table", Shape{200, 3}, initializers::normal(0, 1, 3),
              {optimizers::Adam{.learning_rate = 0.1}}),
        small("small", Shape{200, 8}, initializers::normal(0, 1, 4),
              {.optimizer = optimizers::Adam{.learning_rate = 0.1}, .int8_rows = true}),
        counts("counts", Shape{70}, {}, {optimizers::SGD{.learning_rate = -1}}),
        dense("dense", Shape{5}, {}, {optimizers::Adagrad{.learning_rate = 0.5}}) {
    scope.reset();
  }
  void push(std::vector<std::int64_t> rows) {
    table.push(rows, std::vector<float>(rows.size() * 3, 0.25F));
    std::vector<float> gradient(rows.size() * 8);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = 0.1F * static_cast<float>(i % 7);
    small.push(rows, gradient);
    for (std::int64_t& row : rows) row %= 70;
    counts.push(rows, std::vector<std::int64_t>(rows.size(), 1));
    table.flush();
    small.flush();
  }
  void push_dense() {
    dense.push_dense(std::vector<double>{1, 2, 3, 4, 5});
    dense.flush();
  }
  auto state() const { return std::tuple(table.pull(), small.pull(), counts.pull(), dense.pull()); }

  RankThreads ranks;
  ParameterServerStrategy strategy;
  std::optional<ParameterServerStrategy::Scope> scope;  // while variables are created
  Variable<float> table;
  Variable<float> small;
  Variable<std::int64_t> counts;
  Variable<double> dense;
};

/// Number of rows of the variable in an incremental checkpoint; nullopt if the checkpoint has all rows.
std::optional<std::uint64_t> changed(const std::filesystem::path& checkpoint, const char* variable) {
  return io::CheckpointReader(checkpoint).variable(variable).changed;
}

constexpr SaveOptions kIncremental{.incremental = true};

TEST(IncrementalSave, HasTheRowsChangedSinceTheLastFullSave) {
  const io::TemporaryDirectory directory;
  SavingProgram program(2);
  CheckpointManager manager(program.strategy, {.directory = directory.path()});
  program.push({1, 2, 3});
  const auto full = manager.save(1, "null", kIncremental);
  EXPECT_EQ(changed(full, "table"), std::nullopt) << "the first save is full";
  program.push({7, 199, 7});
  const auto second = manager.save(2, "null", kIncremental);
  EXPECT_EQ(changed(second, "table"), std::optional<std::uint64_t>(2));
  EXPECT_EQ(changed(second, "counts"), std::optional<std::uint64_t>(2));
  EXPECT_EQ(changed(second, "dense"), std::optional<std::uint64_t>(0));
  program.push({8});
  program.push_dense();
  const auto third = manager.save(3, "null", kIncremental);
  EXPECT_EQ(changed(third, "table"), std::optional<std::uint64_t>(3)) << "changed in both steps";
  EXPECT_EQ(changed(third, "dense"), std::optional<std::uint64_t>(5));
  const auto fourth = manager.save(4);
  EXPECT_EQ(changed(fourth, "table"), std::nullopt);
  const auto fifth = manager.save(5, "null", kIncremental);
  EXPECT_EQ(changed(fifth, "table"), std::optional<std::uint64_t>(0))
      << "nothing changed since the fourth save";
}

void train(SavingProgram& program, unsigned seed) {
  std::mt19937 random(seed);
  for (int step = 0; step < 3; ++step) {
    std::vector<std::int64_t> rows(1 + random() % 20);
    for (std::int64_t& row : rows) row = static_cast<std::int64_t>(random() % 200);
    program.push(rows);
  }
  if (seed % 2 == 0) program.push_dense();
}

TEST(IncrementalSave, IsRestoredExactlyByAnyNumberOfPs) {
  for (int writers = 1; writers <= 3; ++writers) {
    const io::TemporaryDirectory directory;
    SavingProgram first(writers);
    CheckpointManager saving(first.strategy, {.directory = directory.path(), .max_to_keep = 2});
    for (int save = 1; save <= 6; ++save) {
      train(first, static_cast<unsigned>(10 * writers + save));
      saving.save(save, "null", {.incremental = save != 4});
    }
    EXPECT_EQ(saving.checkpoints().size(), 3U) << "two, and their base";
    const auto saved = first.state();
    train(first, 77);
    const auto later = first.state();
    for (int readers = 1; readers <= 3; ++readers) {
      SCOPED_TRACE(std::to_string(writers) + " ps saved, " + std::to_string(readers) + " restore");
      SavingProgram second(readers);
      CheckpointManager restoring(second.strategy, {.directory = directory.path(), .max_to_keep = 2});
      train(second, 3);
      EXPECT_EQ(restoring.restore_latest(), std::optional<std::int64_t>(6));
      EXPECT_EQ(second.state(), saved);
      // Slots and steps are restored too.
      train(second, 77);
      EXPECT_EQ(second.state(), later);
    }
  }
}

TEST(IncrementalSave, IsFullAfterARestore) {
  const io::TemporaryDirectory directory;
  SavingProgram program(2);
  CheckpointManager manager(program.strategy, {.directory = directory.path()});
  program.push({1});
  manager.save(1, "null", kIncremental);
  program.push({2});
  manager.save(2, "null", kIncremental);
  const auto saved = program.state();
  program.push({3});
  EXPECT_EQ(manager.restore_latest(), std::optional<std::int64_t>(2));
  EXPECT_EQ(changed(manager.save(3, "null", kIncremental), "table"), std::nullopt);
  program.push({4});
  EXPECT_EQ(changed(manager.save(4, "null", kIncremental), "table"), std::optional<std::uint64_t>(1));
  std::filesystem::remove_all(directory.path() / "checkpoint-00000004");
  EXPECT_EQ(manager.restore_latest(), std::optional<std::int64_t>(3));
  EXPECT_EQ(program.state(), saved);
}

TEST(IncrementalSave, IsFullIfItsBaseWasDeleted) {
  const io::TemporaryDirectory directory;
  SavingProgram program(1);
  CheckpointManager manager(program.strategy, {.directory = directory.path()});
  std::filesystem::remove_all(manager.save(1, "null", kIncremental));
  program.push({5});
  EXPECT_EQ(changed(manager.save(2, "null", kIncremental), "table"), std::nullopt);
  // A save cannot be based on a save of the same step.
  EXPECT_EQ(changed(manager.save(2, "null", kIncremental), "table"), std::nullopt);
  program.push({6});
  EXPECT_EQ(changed(manager.save(3, "null", kIncremental), "table"), std::optional<std::uint64_t>(1));
}

TEST(IncrementalSave, UsesOnlyTheLastMarkOfTwoManagers) {
  const io::TemporaryDirectory directory, other_directory;
  SavingProgram program(1);
  CheckpointManager one(program.strategy, {.directory = directory.path()});
  CheckpointManager other(program.strategy, {.directory = other_directory.path()});
  one.save(1, "null", kIncremental);
  program.push({5});
  other.save(1, "null", kIncremental);
  program.push({6});
  // Rows that are not known to be unchanged are saved.
  EXPECT_EQ(changed(one.save(2, "null", kIncremental), "table"), std::optional<std::uint64_t>(200));
  EXPECT_EQ(changed(other.save(2, "null", kIncremental), "table"), std::optional<std::uint64_t>(1));
  const auto saved = program.state();
  program.push({7});
  EXPECT_EQ(one.restore_latest(), std::optional<std::int64_t>(2));
  EXPECT_EQ(program.state(), saved);
  program.push({8});
  EXPECT_EQ(other.restore_latest(), std::optional<std::int64_t>(2));
  EXPECT_EQ(program.state(), saved);
}

TEST(IncrementalSave, IncludesNewVariables) {
  const io::TemporaryDirectory directory;
  SavingProgram program(2);
  CheckpointManager manager(program.strategy, {.directory = directory.path()});
  manager.save(1, "null", kIncremental);
  const auto scope = program.strategy.scope();
  const Variable<float> later("later", Shape{9, 2}, initializers::constant(3));
  const auto path = manager.save(2, "null", kIncremental);
  EXPECT_EQ(changed(path, "later"), std::optional<std::uint64_t>(9));
  later.assign(std::vector<float>(18, 1));
  EXPECT_EQ(manager.restore_latest(), std::optional<std::int64_t>(2));
  EXPECT_EQ(later.pull(), std::vector<float>(18, 3));
}

}  // namespace
}  // namespace capstan

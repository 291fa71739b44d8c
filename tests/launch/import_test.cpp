// import_test.cpp -- a program restores checkpoints that `capstan checkpoint import` and `reshard` wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "capstan/checkpoint.hpp"
#include "io/export/npy.hpp"
#include "io/temporary_directory.hpp"
#include "launch/checkpoint/commands.hpp"
#include "strategy/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/names_all.hpp"
#include "support/rank_threads.hpp"

namespace capstan::launch::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Returns a table whose element [row][column] is 10 row + column.
std::vector<float> table_of(std::int64_t rows, std::int64_t columns) {
  std::vector<float> values;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column)
      values.push_back(static_cast<float>(10 * row + column));
  }
  return values;
}

/// Writes `values` to table.npy as an array with two columns. Returns its path.
fs::path write_npy(const io::TemporaryDirectory& scratch, const std::vector<float>& values) {
  std::string bytes = io::npy_head(DType::float32, {values.size() / 2, 2});
  const std::size_t head = bytes.size();
  bytes.resize(head + values.size() * sizeof(float));
  std::memcpy(bytes.data() + head, values.data(), values.size() * sizeof(float));
  return scratch.write("table.npy", bytes);
}

/// A program on two ps whose table starts at 0.
struct Program {
  Program(const Optimizer& optimizer, const fs::path& directory)
      : ranks({.ranks = 4, .flags = {{"ps", "2"}}}),
        strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{2}}),
        scope(std::in_place, &strategy.implementation()),
        table("pre/trained", Shape{5, 2}, {}, {optimizer}),
        head("head", Shape{3}, initializers::constant(7), {optimizer}) {
    scope.reset();
    CheckpointManager checkpoints(strategy, {.directory = directory});
    step = checkpoints.restore_latest({.allow_missing = true});
  }

  RankThreads ranks;
  ParameterServerStrategy strategy;
  std::optional<ParameterServerStrategy::Scope> scope;
  Variable<float> table;
  Variable<float> head;
  std::optional<std::int64_t> step;
};

TEST(Import, ProgramRestoresVariableByName) {
  const io::TemporaryDirectory scratch;
  const auto file = write_npy(scratch, table_of(5, 2));
  const std::vector<Optimizer> optimizers{
      optimizers::SGD{},  optimizers::Momentum{}, optimizers::Adagrad{}, optimizers::RMSProp{},
      optimizers::Adam{}, optimizers::AdamW{},    optimizers::FTRL{}};
  for (const Optimizer& optimizer : optimizers) {
    const std::string name(to_string(optimizer.kind));
    SCOPED_TRACE(name);
    const auto out = scratch.path() / name;
    ASSERT_EQ(import_from({.verb = Verb::import_file,
                           .from = file,
                           .to = out,
                           .variables = {"pre/trained"},
                           .optimizer = name,
                           .step = 3}),
              0);
    const Program program(optimizer, out);
    EXPECT_EQ(program.step, 3);
    EXPECT_EQ(program.table.pull(), table_of(5, 2));
    EXPECT_EQ(program.head.pull(), (std::vector<float>{7, 7, 7}));
    // The first push has the same effect as on a new variable with these values.
    Program fresh(optimizer, scratch.path() / "none");
    fresh.table.assign(table_of(5, 2));
    const std::vector<float> gradient(10, 0.5F);
    for (const Variable<float>& table : {program.table, fresh.table}) {
      table.push_dense(gradient);
      table.flush();
    }
    EXPECT_EQ(program.table.pull(), fresh.table.pull());
  }
}

TEST(Import, RejectsCheckpointOfAnotherOptimizer) {
  const io::TemporaryDirectory scratch;
  const auto file = write_npy(scratch, table_of(5, 2));
  import_from(
      {.verb = Verb::import_file, .from = file, .to = scratch.path() / "out", .variables = {"pre/trained"}});
  EXPECT_THAT(
      error_of(Code::failed_precondition, [&] { Program(optimizers::Adam{}, scratch.path() / "out"); }),
      NamesAll({"sgd(imported)", "adam"}));
}

TEST(Reshard, ProgramRestoresAnyNumberOfParts) {
  const io::TemporaryDirectory scratch;
  const auto file = write_npy(scratch, table_of(5, 2));
  import_from({.verb = Verb::import_file,
               .from = file,
               .to = scratch.path() / "one",
               .variables = {"pre/trained"},
               .optimizer = "adam"});
  for (const std::int64_t parts : {1, 2, 5, 9}) {
    const auto out = scratch.path() / std::to_string(parts);
    ASSERT_EQ(reshard({.verb = Verb::reshard, .from = scratch.path() / "one", .to = out, .parts = parts}), 0);
    EXPECT_EQ(Program(optimizers::Adam{}, out).table.pull(), table_of(5, 2));
  }
}

}  // namespace
}  // namespace capstan::launch::checkpoint

// checkpoint_test.cpp -- variables that are saved and restored with different numbers of shards; the restore
// comes before or after the creation of the variable.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "capstan/checkpoint.hpp"
#include "io/temporary_directory.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using Floats = std::vector<float>;

/// A job with one variable "v" in a number of shards.
class Job {
 public:
  Job(int ps, std::int64_t shards)
      : ranks_({.ranks = 2 + ps, .flags = {{"ps", std::to_string(ps)}}}),
        strategy_(ranks_.cluster(), {.variable_partitioner = FixedShardsPartitioner{shards}}) {}

  Variable<float> make(const Shape& shape, float value, const Optimizer& optimizer = optimizers::SGD{1}) {
    const auto scope = strategy_.scope();
    return Variable<float>("v", shape, initializers::constant(value), {.optimizer = optimizer});
  }
  CheckpointManager manager(const io::TemporaryDirectory& directory) {
    return CheckpointManager(strategy_, {.directory = directory.path()});
  }

 private:
  RankThreads ranks_;
  ParameterServerStrategy strategy_;
};

class Checkpoints : public testing::TestWithParam<bool> {
 protected:
  /// Returns the values of a variable of `shards` shards on `ps` ps after it has been restored.
  Floats restored(int ps, std::int64_t shards, const Shape& shape) const {
    Job job(ps, shards);
    CheckpointManager manager = job.manager(directory_);
    std::optional<Variable<float>> v;
    const bool delayed = GetParam();
    if (!delayed) v.emplace(job.make(shape, -1));
    EXPECT_EQ(manager.restore_latest(), 1);
    if (delayed) v.emplace(job.make(shape, -1));
    manager.assert_consumed();
    return v->pull();
  }
  void save(int ps, std::int64_t shards, const Shape& shape, const Floats& values) const {
    Job job(ps, shards);
    auto v = job.make(shape, 0);
    v.assign(values);
    job.manager(directory_).save(1);
  }

  io::TemporaryDirectory directory_;
};

// A3.10: better: any number of shards and of ps, also before the variable is created, with slots and steps;
// the shards form one array, which other programs read completely, and damage is rejected by name.
// B101-B104: same.
TEST_P(Checkpoints, OfTwoShardsRestoreIntoOneTwoAndFour) {
  save(2, 2, {4}, {1, 2, 3, 4});
  EXPECT_EQ(restored(2, 2, {4}), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(restored(2, 4, {4}), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(restored(1, 1, {4}), (Floats{1, 2, 3, 4}));
}

// S85: better: a checkpoint names the shards of each variable.
TEST_P(Checkpoints, NameTheirShards) {
  save(2, 2, {4}, {1, 2, 3, 4});
  std::ifstream manifest(directory_.path() / "checkpoint-00000001" / "manifest.json");
  const std::string text{std::istreambuf_iterator<char>(manifest), {}};
  EXPECT_THAT(text, testing::HasSubstr("\"v/part_0\""));
  EXPECT_THAT(text, testing::HasSubstr("\"v/part_1\""));
}

// B135-B139: same.
TEST_P(Checkpoints, RestoreUndoesLaterChanges) {
  Job job(2, 4);
  auto v = job.make({4, 2}, 0);
  CheckpointManager manager = job.manager(directory_);
  manager.save(1);
  v.assign(Floats(8, 4));
  EXPECT_EQ(manager.restore_latest(), 1);
  EXPECT_EQ(v.pull(), Floats(8, 0));
  EXPECT_EQ(restored(2, 4, {4, 2}), Floats(8, 0));
  EXPECT_EQ(restored(2, 2, {4, 2}), Floats(8, 0)) << "four shards into two";
}

// B181: same.
TEST_P(Checkpoints, RestoreFromAnyShardsToAnyOthers) {
  const Floats values{1, 2, 3, 4, 5, 6};
  for (const auto& [from, to] : {std::pair{2, 2}, {2, 3}, {3, 2}, {2, 1}, {1, 1}, {1, 6}, {6, 5}}) {
    save(2, from, {6}, values);
    EXPECT_EQ(restored(3, to, {6}), values) << from << " to " << to;
  }
}

// A2.19: better: slots have the shards of their variable, and restore to any other number of shards and ps.
TEST_P(Checkpoints, SlotsHaveTheShardsOfTheirVariable) {
  const Optimizer adam = optimizers::Adam{.learning_rate = 0.5};
  const auto push = [](const Variable<float>& v, float by) {
    v.push_dense(Floats{by, -by, 2 * by, 0, 1, by, by});
    v.flush();
  };
  Floats expected;
  {
    Job job(2, 3);
    auto v = job.make({7}, 1, adam);
    push(v, 1);
    push(v, -3);
    job.manager(directory_).save(1);
    push(v, 2);
    expected = v.pull();
  }
  for (const int ps : {1, 2, 3, 5}) {
    for (const int shards : {1, 2, 5, 7}) {
      Job job(ps, shards);
      CheckpointManager manager = job.manager(directory_);
      const auto restore_if = [&](bool now) { EXPECT_EQ(now ? manager.restore_latest() : 1, 1); };
      restore_if(GetParam());
      auto v = job.make({7}, 0, adam);
      restore_if(!GetParam());
      push(v, 2);
      EXPECT_EQ(v.pull(), expected) << ps << " ps, " << shards << " shards";
    }
  }
}

std::string when(const testing::TestParamInfo<bool>& info) { return info.param ? "Delayed" : "AtOnce"; }
INSTANTIATE_TEST_SUITE_P(Restored, Checkpoints, testing::Bool(), when);

}  // namespace
}  // namespace capstan

// background_save_test.cpp -- a checkpoint is written while the program goes on, and other saves wait for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/settings.hpp"
#include "capstan/capstan.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "io/temporary_folder.hpp"

namespace capstan {
namespace {

constexpr std::int64_t kRows = 1 << 16;

/// Two ps that write 2 MiB each, so slowly that a save takes a quarter of a second.
Settings slow() {
  Settings settings;
  settings.set_from_flag("ps", "2");
  settings.set_from_flag("checkpoint-bandwidth", "4MiB");
  return settings;
}

class BackgroundSave : public testing::Test {
 protected:
  std::filesystem::path path(const char* name) const { return folder_.path() / name; }
  static float first_of(const std::filesystem::path& checkpoint) {
    return SavedCheckpoint(checkpoint).read_rows<float>("w", 0, 1).values[0];
  }

  io::TemporaryFolder folder_;
  Cluster cluster_ = Cluster::join(slow());
  ParameterServerStrategy strategy_{cluster_, {.variable_partitioner = FixedShardsPartitioner{2}}};
  ParameterServerStrategy::Scope scope_ = strategy_.scope();
  Variable<float> w_{"w", {kRows, 16}, initializers::constant(1)};
};

TEST_F(BackgroundSave, HasWhatWasThereWhenItBegan) {
  const ClusterCoordinator coordinator(strategy_);
  CheckpointManager manager(strategy_, {.directory = path("run")});
  const auto begin = std::chrono::steady_clock::now();
  const auto saved = manager.save(1, "null", {.background = true});
  w_.assign(std::vector<float>(kRows * 16, 2));
  EXPECT_FALSE(std::filesystem::exists(saved)) << "or it was not in the background";
  manager.wait();
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
  EXPECT_EQ(first_of(saved), 1);
  EXPECT_EQ(w_.pull()[0], 2);
}

TEST_F(BackgroundSave, OfAnotherKindWaitsForIt) {
  const ClusterCoordinator coordinator(strategy_);
  CheckpointManager manager(strategy_, {.directory = path("run")});
  CheckpointManager another(strategy_, {.directory = path("another")});
  const auto first = manager.save(1, "null", {.background = true});
  w_.assign(std::vector<float>(kRows * 16, 2));
  Checkpoint(strategy_).write(path("second"));
  w_.assign(std::vector<float>(kRows * 16, 3));
  const auto third = another.save(3, "null", {.background = true});
  w_.assign(std::vector<float>(kRows * 16, 4));
  const auto fourth = manager.save(4);
  another.wait();
  EXPECT_EQ(first_of(first), 1);
  EXPECT_EQ(first_of(path("second")), 2);
  EXPECT_EQ(first_of(third), 3);
  EXPECT_EQ(first_of(fourth), 4);
}

TEST_F(BackgroundSave, IsWholeWhenTheProgramEnds) {
  std::filesystem::path saved;
  {
    CheckpointManager manager(strategy_, {.directory = path("run")});
    const ClusterCoordinator coordinator(strategy_);
    saved = manager.save(1, "null", {.background = true});
  }
  EXPECT_EQ(first_of(saved), 1);
}

TEST_F(BackgroundSave, WithoutACoordinatorItWaits) {
  CheckpointManager manager(strategy_, {.directory = path("run")});
  const auto saved = manager.save(1, "null", {.background = true});
  EXPECT_EQ(first_of(saved), 1);
}

TEST_F(BackgroundSave, WhatGoesWrongIsSaidByTheNext) {
  const ClusterCoordinator coordinator(strategy_);
  CheckpointManager manager(strategy_, {.directory = path("run")});
  const auto saved = manager.save(1, "null", {.background = true});
  auto unfinished = saved;
  unfinished += ".tmp";
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::error_code in_use;  // a ps may be about to make a file there
  do {
    std::filesystem::remove_all(unfinished, in_use);
  } while (in_use && std::chrono::steady_clock::now() < deadline);
  EXPECT_THROW(manager.wait(), Error);
  EXPECT_EQ(first_of(manager.save(2)), 1);
}

class ThroughAFastLevel : public testing::Test {
 protected:
  Settings settings() const {
    Settings settings = slow();
    settings.set_from_flag("checkpoint-fast-dir", (folder_.path() / "fast").string());
    return settings;
  }
  std::filesystem::path path(const char* name) const { return folder_.path() / name; }
  /// Of the only one in the fast level; nothing when there is none.
  std::optional<std::int64_t> fast_step() const {
    for (const auto& entry : std::filesystem::directory_iterator(path("fast")))
      if (const auto newest = io::CheckpointDirectory(entry.path()).latest()) return newest->step;
    return std::nullopt;
  }

  io::TemporaryFolder folder_;
  Cluster cluster_ = Cluster::join(settings());
  ParameterServerStrategy strategy_{cluster_, {.variable_partitioner = FixedShardsPartitioner{2}}};
  ParameterServerStrategy::Scope scope_ = strategy_.scope();
  Variable<float> w_{"w", {kRows, 16}, initializers::constant(1)};
};

TEST_F(ThroughAFastLevel, ACheckpointIsThereUntilItIsInItsDirectory) {
  const ClusterCoordinator coordinator(strategy_);
  CheckpointManager manager(strategy_, {.directory = path("run")});
  const auto saved = manager.save(1, "null", {.background = true});
  w_.assign(std::vector<float>(kRows * 16, 2));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!fast_step() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(fast_step(), 1);
  EXPECT_FALSE(std::filesystem::exists(saved));
  EXPECT_EQ(manager.latest(), std::nullopt);
  manager.wait();
  EXPECT_EQ(SavedCheckpoint(saved).read_rows<float>("w", 0, 1).values[0], 1);
  EXPECT_TRUE(std::filesystem::is_empty(path("fast")));
}

TEST_F(ThroughAFastLevel, OneThatDidNotReachItsDirectoryIsRestored) {
  const ClusterCoordinator coordinator(strategy_);
  {
    CheckpointManager manager(strategy_, {.directory = path("run")});
    auto unfinished = manager.save(1, "null", {.background = true});
    std::filesystem::remove_all(unfinished += ".tmp");
    EXPECT_THROW(manager.wait(), Error);
    EXPECT_EQ(fast_step(), 1);
  }
  w_.assign(std::vector<float>(kRows * 16, 2));
  CheckpointManager manager(strategy_, {.directory = path("run")});
  EXPECT_EQ(manager.latest(), std::nullopt);
  EXPECT_EQ(manager.restore_latest(), 1);
  EXPECT_EQ(w_.pull(), std::vector<float>(kRows * 16, 1));
  EXPECT_EQ(manager.latest(), 1);
  EXPECT_TRUE(std::filesystem::is_empty(path("fast")));
}

TEST_F(ThroughAFastLevel, AnIncrementIsRestoredWithItsBase) {
  const ClusterCoordinator coordinator(strategy_);
  {
    CheckpointManager manager(strategy_, {.directory = path("run")});
    manager.save(1, "null", {.incremental = true});
    w_.scatter_update(std::vector<std::int64_t>{5}, std::vector<float>(16, 7));
    auto unfinished = manager.save(2, "null", {.incremental = true, .background = true});
    std::filesystem::remove_all(unfinished += ".tmp");
    EXPECT_THROW(manager.wait(), Error);
    EXPECT_EQ(fast_step(), 2);
  }
  w_.assign(std::vector<float>(kRows * 16, 2));
  CheckpointManager manager(strategy_, {.directory = path("run")});
  EXPECT_EQ(manager.restore_latest(), 2);
  std::vector<float> expected(kRows * 16, 1);
  std::fill_n(expected.begin() + 5 * 16, 16, 7.0F);
  EXPECT_EQ(w_.pull(), expected);
}

TEST_F(ThroughAFastLevel, OneUnderANameLeavesNothingThere) {
  Checkpoint(strategy_).write(path("best"));
  w_.assign(std::vector<float>(kRows * 16, 2));
  Checkpoint(strategy_).write(path("best"));
  EXPECT_EQ(SavedCheckpoint(path("best")).read_rows<float>("w", 0, 1).values[0], 2);
  EXPECT_TRUE(std::filesystem::is_empty(path("fast")));
}

}  // namespace
}  // namespace capstan

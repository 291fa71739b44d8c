// background_save_test.cpp -- a checkpoint is written in the background, and later saves wait for it.
// Tests: src/strategy/save_progress.cpp
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
#include "cluster/bootstrap/join.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "io/temporary_directory.hpp"

namespace capstan {
namespace {

constexpr std::int64_t kBackgroundSaveRows = 1 << 16;

/// Two ps that write 2 MiB each, throttled so that a save takes a quarter of a second. A test that needs an
/// unfinished save saves again if the save ended too early.
Settings slow_save_settings() {
  Settings settings;
  settings.set_from_flag("ps", "2");
  settings.set_from_flag("checkpoint-bandwidth", "4MiB");
  return settings;
}

/// Begins saves and removes their files, until it removes those of an unfinished save, which then fails.
/// Returns the step of that save.
std::int64_t save_and_lose(CheckpointManager& manager, std::int64_t step, const SaveOptions& options) {
  for (;; ++step) {
    const auto saved = manager.save(step, "null", options);
    auto unfinished = saved;
    unfinished += ".tmp";
    std::error_code in_use;  // a ps may be creating a file there
    do {
      std::filesystem::remove_all(unfinished, in_use);
    } while (in_use);
    if (!std::filesystem::exists(saved)) return step;
    manager.wait();
  }
}

class BackgroundSave : public testing::Test {
 protected:
  std::filesystem::path path(const char* name) const { return directory_.path() / name; }
  static float first_of(const std::filesystem::path& checkpoint) {
    return SavedCheckpoint(checkpoint).read_rows<float>("w", 0, 1).values[0];
  }

  io::TemporaryDirectory directory_;
  Cluster cluster_ = cluster::join(slow_save_settings());
  ParameterServerStrategy strategy_{cluster_, {.variable_partitioner = FixedShardsPartitioner{2}}};
  ParameterServerStrategy::Scope scope_ = strategy_.scope();
  Variable<float> w_{"w", Shape{kBackgroundSaveRows, 16}, initializers::constant(1)};
};

TEST_F(BackgroundSave, ContainsTheValuesAtTheTimeOfTheCall) {
  const ClusterCoordinator coordinator(strategy_);
  CheckpointManager manager(strategy_, {.directory = path("run")});
  std::filesystem::path saved;
  for (std::int64_t step = 1; saved.empty(); ++step) {
    ASSERT_LE(step, 100) << "every save ended before it was checked";
    w_.assign(std::vector<float>(kBackgroundSaveRows * 16, 1));
    const auto begin = std::chrono::steady_clock::now();
    const auto path = manager.save(step, "null", {.background = true});
    w_.assign(std::vector<float>(kBackgroundSaveRows * 16, 2));
    if (!std::filesystem::exists(path)) saved = path;
    manager.wait();
    EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
    EXPECT_EQ(first_of(path), 1);
  }
  EXPECT_EQ(w_.pull()[0], 2);
}

TEST_F(BackgroundSave, LaterSavesWaitForIt) {
  const ClusterCoordinator coordinator(strategy_);
  CheckpointManager manager(strategy_, {.directory = path("run")});
  CheckpointManager another(strategy_, {.directory = path("another")});
  const auto first = manager.save(1, "null", {.background = true});
  w_.assign(std::vector<float>(kBackgroundSaveRows * 16, 2));
  Checkpoint(strategy_).write(path("second"));
  w_.assign(std::vector<float>(kBackgroundSaveRows * 16, 3));
  const auto third = another.save(3, "null", {.background = true});
  w_.assign(std::vector<float>(kBackgroundSaveRows * 16, 4));
  const auto fourth = manager.save(4);
  another.wait();
  EXPECT_EQ(first_of(first), 1);
  EXPECT_EQ(first_of(path("second")), 2);
  EXPECT_EQ(first_of(third), 3);
  EXPECT_EQ(first_of(fourth), 4);
}

TEST_F(BackgroundSave, IsCompleteWhenTheProgramEnds) {
  std::filesystem::path saved;
  {
    CheckpointManager manager(strategy_, {.directory = path("run")});
    const ClusterCoordinator coordinator(strategy_);
    saved = manager.save(1, "null", {.background = true});
  }
  EXPECT_EQ(first_of(saved), 1);
}

TEST_F(BackgroundSave, BlocksWithoutACoordinator) {
  CheckpointManager manager(strategy_, {.directory = path("run")});
  const auto saved = manager.save(1, "null", {.background = true});
  EXPECT_EQ(first_of(saved), 1);
}

TEST_F(BackgroundSave, WaitThrowsItsError) {
  const ClusterCoordinator coordinator(strategy_);
  CheckpointManager manager(strategy_, {.directory = path("run")});
  const std::int64_t failed = save_and_lose(manager, 1, {.background = true});
  EXPECT_THROW(manager.wait(), Error);
  EXPECT_EQ(first_of(manager.save(failed + 1)), 1);
}

class ThroughAFastLevel : public testing::Test {
 protected:
  Settings settings() const {
    Settings settings = slow_save_settings();
    settings.set_from_flag("checkpoint-fast-dir", (directory_.path() / "fast").string());
    return settings;
  }
  std::filesystem::path path(const char* name) const { return directory_.path() / name; }
  /// Returns the step of the newest checkpoint in the fast level, if there is one.
  std::optional<std::int64_t> fast_step() const {
    for (const auto& entry : std::filesystem::directory_iterator(path("fast")))
      if (const auto newest = io::CheckpointDirectory(entry.path()).latest()) return newest->step;
    return std::nullopt;
  }

  io::TemporaryDirectory directory_;
  Cluster cluster_ = cluster::join(settings());
  ParameterServerStrategy strategy_{cluster_, {.variable_partitioner = FixedShardsPartitioner{2}}};
  ParameterServerStrategy::Scope scope_ = strategy_.scope();
  Variable<float> w_{"w", Shape{kBackgroundSaveRows, 16}, initializers::constant(1)};
};

TEST_F(ThroughAFastLevel, CheckpointStaysInTheFastLevelUntilItIsCopied) {
  const ClusterCoordinator coordinator(strategy_);
  CheckpointManager manager(strategy_, {.directory = path("run")});
  std::optional<std::int64_t> before;
  for (std::int64_t step = 1;; ++step) {
    ASSERT_LE(step, 100) << "every checkpoint was copied before it was seen in the fast level";
    w_.assign(std::vector<float>(kBackgroundSaveRows * 16, 1));
    const auto saved = manager.save(step, "null", {.background = true});
    w_.assign(std::vector<float>(kBackgroundSaveRows * 16, 2));
    std::optional<std::int64_t> fast;
    while (!fast && !std::filesystem::exists(saved)) fast = fast_step();
    const auto latest = manager.latest();
    const bool in_time = !std::filesystem::exists(saved);
    manager.wait();
    EXPECT_EQ(SavedCheckpoint(saved).read_rows<float>("w", 0, 1).values[0], 1);
    EXPECT_TRUE(std::filesystem::is_empty(path("fast")));
    if (in_time) {
      EXPECT_EQ(fast, step);
      EXPECT_EQ(latest, before);
      return;
    }
    before = step;
  }
}

TEST_F(ThroughAFastLevel, RestoresACheckpointThatDidNotReachItsDirectory) {
  const ClusterCoordinator coordinator(strategy_);
  std::int64_t lost = 0;
  {
    CheckpointManager manager(strategy_, {.directory = path("run")});
    lost = save_and_lose(manager, 1, {.background = true});
    EXPECT_THROW(manager.wait(), Error);
    EXPECT_EQ(fast_step(), lost);
  }
  w_.assign(std::vector<float>(kBackgroundSaveRows * 16, 2));
  CheckpointManager manager(strategy_, {.directory = path("run")});
  EXPECT_EQ(manager.latest().value_or(0), lost - 1);
  EXPECT_EQ(manager.restore_latest(), lost);
  EXPECT_EQ(w_.pull(), std::vector<float>(kBackgroundSaveRows * 16, 1));
  EXPECT_EQ(manager.latest(), lost);
  EXPECT_TRUE(std::filesystem::is_empty(path("fast")));
}

TEST_F(ThroughAFastLevel, RestoresAnIncrementWithItsBase) {
  const ClusterCoordinator coordinator(strategy_);
  std::int64_t lost = 0;
  {
    CheckpointManager manager(strategy_, {.directory = path("run")});
    manager.save(1, "null", {.incremental = true});
    w_.scatter_update(std::vector<std::int64_t>{5}, std::vector<float>(16, 7));
    lost = save_and_lose(manager, 2, {.incremental = true, .background = true});
    EXPECT_THROW(manager.wait(), Error);
    EXPECT_EQ(fast_step(), lost);
  }
  w_.assign(std::vector<float>(kBackgroundSaveRows * 16, 2));
  CheckpointManager manager(strategy_, {.directory = path("run")});
  EXPECT_EQ(manager.restore_latest(), lost);
  std::vector<float> expected(kBackgroundSaveRows * 16, 1);
  std::fill_n(expected.begin() + 5 * 16, 16, 7.0F);
  EXPECT_EQ(w_.pull(), expected);
}

TEST_F(ThroughAFastLevel, NamedCheckpointLeavesNoFilesInTheFastLevel) {
  Checkpoint(strategy_).write(path("best"));
  w_.assign(std::vector<float>(kBackgroundSaveRows * 16, 2));
  Checkpoint(strategy_).write(path("best"));
  EXPECT_EQ(SavedCheckpoint(path("best")).read_rows<float>("w", 0, 1).values[0], 2);
  EXPECT_TRUE(std::filesystem::is_empty(path("fast")));
}

}  // namespace
}  // namespace capstan

// background_save_test.cpp -- a checkpoint is written while the program goes on, and other saves wait for it.
#include <gtest/gtest.h>

#include <chrono>

#include "base/settings.hpp"
#include "capstan/capstan.hpp"
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
  std::filesystem::remove_all(unfinished += ".tmp");
  EXPECT_THROW(manager.wait(), Error);
  EXPECT_EQ(first_of(manager.save(2)), 1);
}

}  // namespace
}  // namespace capstan

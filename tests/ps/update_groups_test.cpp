// update_groups_test.cpp -- completion of steps on one ps.
#include "ps/update/update_groups.hpp"

#include <gtest/gtest.h>

#include <string>

namespace capstan::ps {
namespace {

class UpdateGroupsTest : public testing::Test {
 protected:
  void create(protocol::GroupMode mode, int backup_workers = 0) {
    groups_.create({1, mode, 0, true, backup_workers, {4, 5, 6}});
  }
  /// Pushes no rows to shard `shard` of variable 1.
  void push(int rank, std::uint32_t shard) {
    protocol::PushHeader header;
    header.kind = protocol::PushKind::sparse;
    header.variable = 1;
    header.shard = shard;
    header.rank = static_cast<std::uint32_t>(rank);
    groups_.hold(1, header, {}, {});
  }
  void end(int rank, std::uint64_t step) { groups_.end_step(1, rank, step); }
  /// Returns the applied pushes and published steps since the last call.
  std::string log() { return std::exchange(log_, ""); }

  std::string log_;
  UpdateGroups groups_{
      [this](std::span<const HeldPush* const> pushes, int workers) {
        log_ += "shard " + std::to_string(pushes.front()->header.shard) + " from";
        for (const HeldPush* push : pushes) log_ += " " + std::to_string(push->header.rank);
        log_ += " of " + std::to_string(workers) + "; ";
      },
      [this](std::uint32_t, std::uint64_t steps) { log_ += "step " + std::to_string(steps) + "; "; }};
};

TEST_F(UpdateGroupsTest, AppliesPushesInRankOrderOnceAllWorkersHaveEnded) {
  create(protocol::GroupMode::synchronous);
  push(6, 0);
  push(5, 1);
  push(4, 0);
  end(6, 1);
  end(4, 1);
  EXPECT_EQ(log(), "");
  end(5, 1);
  EXPECT_EQ(log(), "shard 0 from 4 6 of 3; shard 1 from 5 of 3; step 1; ");
  end(4, 2);
  end(5, 2);
  end(6, 2);
  EXPECT_EQ(log(), "step 2; ");  // applied pushes are not applied again
}

TEST_F(UpdateGroupsTest, DropsTheUnfinishedStepOfADeadWorker) {
  create(protocol::GroupMode::synchronous);
  for (const int rank : {4, 5, 6}) push(rank, 0);
  end(4, 1);
  end(5, 1);
  groups_.remove(6);
  EXPECT_EQ(log(), "shard 0 from 4 5 of 2; step 1; ");
  push(4, 0);
  end(4, 2);
  groups_.remove(4);  // had ended step 2, so its push counts
  groups_.remove(4);
  EXPECT_EQ(log(), "");
  push(5, 0);
  end(5, 2);
  EXPECT_EQ(log(), "shard 0 from 4 5 of 2; step 2; ");
  end(5, 3);
  EXPECT_EQ(log(), "step 3; ");
}

TEST_F(UpdateGroupsTest, WaitsForARestartedWorkerFromItsFirstStep) {
  create(protocol::GroupMode::synchronous);
  groups_.remove(6);
  groups_.join(9);
  EXPECT_TRUE(groups_.holds_back(1, 9));
  for (const int rank : {4, 5, 9}) push(rank, 0);
  end(4, 1);
  end(5, 1);
  EXPECT_EQ(log(), "shard 0 from 4 5 of 2; step 1; ");
  end(9, 2);
  end(4, 2);
  EXPECT_EQ(log(), "");
  end(5, 2);
  EXPECT_EQ(log(), "shard 0 from 9 of 3; step 2; ");
}

TEST_F(UpdateGroupsTest, WorkerThatLeftRejoinsWithItsNextStep) {
  create(protocol::GroupMode::synchronous);
  push(6, 0);
  end(6, protocol::kLeave);
  end(4, 1);
  end(5, 1);
  EXPECT_EQ(log(), "step 1; ");
  push(6, 0);
  end(6, 2);
  end(4, 2);
  EXPECT_EQ(log(), "");
  end(5, 2);
  EXPECT_EQ(log(), "shard 0 from 6 of 3; step 2; ");
}

TEST_F(UpdateGroupsTest, DropsTheStepOfABackupWorker) {
  create(protocol::GroupMode::synchronous, 1);
  push(6, 0);
  end(4, 1);
  end(5, 1);
  EXPECT_EQ(log(), "step 1; ");
  end(6, 1);  // too late
  EXPECT_EQ(log(), "");
  push(6, 0);
  end(6, 2);
  end(4, 2);
  EXPECT_EQ(log(), "shard 0 from 6 of 2; step 2; ");
}

TEST_F(UpdateGroupsTest, OnlyWorkersParticipate) {
  create(protocol::GroupMode::synchronous);
  EXPECT_TRUE(groups_.holds_back(1, 4));
  EXPECT_FALSE(groups_.holds_back(1, 0)) << "the coordinator";
  EXPECT_FALSE(groups_.holds_back(2, 4)) << "no such group";
  groups_.remove(6);
  EXPECT_FALSE(groups_.holds_back(1, 6));
}

TEST_F(UpdateGroupsTest, RestartDropsUnfinishedStepsAndReincludesAllWorkers) {
  create(protocol::GroupMode::synchronous);
  push(4, 0);
  end(6, protocol::kLeave);
  groups_.restart(1);
  end(4, 1);
  end(5, 1);
  EXPECT_EQ(log(), "");
  end(6, 1);
  EXPECT_EQ(log(), "step 1; ");
}

TEST_F(UpdateGroupsTest, StaleGroupFollowsTheSlowestWorker) {
  create(protocol::GroupMode::stale_synchronous);
  end(4, 1);
  end(4, 2);
  end(5, 1);
  EXPECT_EQ(log(), "");
  end(6, 1);
  EXPECT_EQ(log(), "step 1; ");
  groups_.remove(5);
  end(6, 2);
  EXPECT_EQ(log(), "step 2; ");
  end(4, protocol::kLeave);
  end(6, 3);
  EXPECT_EQ(log(), "step 3; ");
  EXPECT_EQ(groups_.clocks(1).clocks, (std::vector<std::pair<std::int32_t, std::uint64_t>>{{6, 3}}));
}

}  // namespace
}  // namespace capstan::ps

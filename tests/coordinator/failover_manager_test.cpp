// failover_manager_test.cpp -- selects the spare that replaces a ps, and admits its incarnation.
// Tests: src/protocol/failover.hpp
#include "coordinator/recovery/failover_manager.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capstan/serialize.hpp"
#include "transport/loop/loop.hpp"
#include "transport/message_types.hpp"

namespace capstan::coordinator {
namespace {

using protocol::FailoverRequest;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The manager of a coordinator whose other ranks record their messages. There are two ps and, by default,
/// two spares.
class FailoverManagerTest : public testing::Test {
 protected:
  using Flags = std::vector<std::pair<std::string, std::string>>;
  using Clock = FailoverManager::Clock;

  void SetUp() override { start({{"ps", "2"}, {"spares", "2"}}); }

  void start(const Flags& flags, const std::map<int, std::string>& host_of_spare = {}) {
    Settings settings;
    for (const auto& [name, value] : flags) settings.set_from_flag(name, value);
    manager_.reset();
    contents_.reset();
    coordinator_.reset();
    ranks_ = cluster::Runtime::as_threads(settings, 6, hub_);
    cluster::Table table = ranks_[0]->table();
    for (cluster::Member& member : table.members) {
      const auto host = member.role == Role::spare ? host_of_spare.find(member.index) : host_of_spare.end();
      if (host != host_of_spare.end()) member.host = host->second;
    }
    coordinator_ = std::make_unique<cluster::Runtime>(settings, table, hub_.open(), hub_.open());
    for (const auto& rank : ranks_) {
      const int number = rank->self().rank;
      rank->control().on_message(transport::kFenced,
                                 [this, number](const transport::Message&) { fenced_.push_back(number); });
      rank->control().on_message(transport::kFailover, [this, number](const transport::Message& message) {
        requests_.emplace_back(number, from_bytes<FailoverRequest>(message.payload));
      });
    }
    contents_ =
        std::make_unique<strategy::PsContents>(coordinator_->coordinator_memory(), /*has_spares=*/true);
    manager_ = std::make_unique<FailoverManager>(*coordinator_, *contents_);
  }
  void save_checkpoint() {
    protocol::CreateShard shard;
    shard.variable = 1;
    shard.name = "w";
    shard.shape = {10, 2};
    shard.rows = 10;
    contents_->add(1, shard);
    contents_->set_checkpoint({.directory = "/checkpoints/3", .step = 3, .variables = {1}, .counters = {}});
  }
  void deliver() {
    for (const auto& rank : ranks_) rank->control().progress();
  }
  const cluster::Member& ps(int index) const { return coordinator_->member(Role::ps, index); }
  int spare(int index) const { return coordinator_->member(Role::spare, index).rank; }
  /// A time at which a spare has exceeded its deadline.
  Clock::time_point too_late() const {
    return Clock::now() + coordinator_->wait_timeout() + std::chrono::hours(1);
  }
  bool advance(int ps_index, Clock::time_point now = Clock::now()) {
    const bool goes_on = manager_->advance(ps(ps_index), dead_, now);
    deliver();
    return goes_on;
  }

  transport::LoopHub hub_;
  std::vector<std::shared_ptr<cluster::Runtime>> ranks_;
  std::unique_ptr<cluster::Runtime> coordinator_;
  std::unique_ptr<strategy::PsContents> contents_;
  std::unique_ptr<FailoverManager> manager_;
  std::vector<std::int32_t> dead_ = {2};
  std::vector<int> fenced_;                                // ranks, in order
  std::vector<std::pair<int, FailoverRequest>> requests_;  // with the rank of the spare, in order
};

TEST_F(FailoverManagerTest, FencesTheOldProcessAndSendsASpareItsState) {
  save_checkpoint();
  EXPECT_EQ(manager_->standbys(), 2);
  ASSERT_TRUE(advance(1));
  EXPECT_THAT(fenced_, ElementsAre(ps(1).rank));
  ASSERT_EQ(requests_.size(), 1U);
  const auto& [rank, failover] = requests_[0];
  EXPECT_EQ(rank, spare(0));
  EXPECT_EQ(failover.rank, ps(1).rank);
  EXPECT_EQ(failover.index, 1);
  EXPECT_EQ(failover.incarnation, 1U);
  EXPECT_EQ(failover.source, FailoverRequest::Source::checkpoint);
  EXPECT_EQ(failover.directory, "/checkpoints/3");
  EXPECT_EQ(failover.dead, dead_);
  ASSERT_EQ(failover.shards.size(), 1U);
  EXPECT_EQ(failover.shards[0].name, "w");
  EXPECT_TRUE(manager_->is_being_replaced(ps(1).rank));
  EXPECT_FALSE(manager_->is_being_replaced(ps(0).rank));
  EXPECT_FALSE(manager_->is_standby(spare(0)));
  EXPECT_TRUE(manager_->is_standby(spare(1)));
  EXPECT_EQ(manager_->standbys(), 1);
}

TEST_F(FailoverManagerTest, SendsOneRequestBeforeTheDeadline) {
  save_checkpoint();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(advance(1));
  EXPECT_EQ(requests_.size(), 1U);
}

TEST_F(FailoverManagerTest, GivesEachPsItsOwnSpare) {
  save_checkpoint();
  EXPECT_TRUE(advance(1));
  EXPECT_TRUE(advance(0));
  ASSERT_EQ(requests_.size(), 2U);
  EXPECT_EQ(requests_[1].first, spare(1));
  EXPECT_EQ(requests_[1].second.rank, ps(0).rank);
  EXPECT_THAT(requests_[1].second.shards, IsEmpty());
}

TEST_F(FailoverManagerTest, PrefersASpareOnAnotherHost) {
  start({{"ps", "2"}, {"spares", "2"}}, {{1, "another-host"}});
  save_checkpoint();
  ASSERT_TRUE(advance(1));
  ASSERT_EQ(requests_.size(), 1U);
  EXPECT_EQ(requests_[0].first, spare(1));
}

TEST_F(FailoverManagerTest, AbandonsThePsWithoutACheckpoint) {
  EXPECT_FALSE(advance(1));
  EXPECT_THAT(manager_->failure_reason(ps(1).rank), HasSubstr("CheckpointManager"));
  EXPECT_THAT(fenced_, IsEmpty());
  EXPECT_EQ(manager_->standbys(), 2);
}

TEST_F(FailoverManagerTest, AbandonsThePsIfNoSpareIsLeft) {
  start({{"ps", "2"}});
  save_checkpoint();
  EXPECT_FALSE(advance(1));
  EXPECT_THAT(manager_->failure_reason(ps(1).rank), HasSubstr("--spares"));
}

TEST_F(FailoverManagerTest, SelectsTheNextSpareWhenOneExceedsItsDeadline) {
  save_checkpoint();
  ASSERT_TRUE(advance(1));
  EXPECT_TRUE(advance(1, too_late()));
  ASSERT_EQ(requests_.size(), 2U);
  EXPECT_EQ(requests_[1].first, spare(1));
  EXPECT_EQ(requests_[1].second.incarnation, 2U);
  EXPECT_FALSE(advance(1, too_late() + std::chrono::hours(1)));
  EXPECT_THAT(manager_->failure_reason(ps(1).rank), HasSubstr(coordinator_->name_of(spare(1))));
  EXPECT_FALSE(manager_->is_being_replaced(ps(1).rank));
}

TEST_F(FailoverManagerTest, SelectsTheNextSpareWhenOneFails) {
  save_checkpoint();
  ASSERT_TRUE(advance(1));
  manager_->on_failover_failed(spare(0), "no space left");
  EXPECT_FALSE(manager_->is_being_replaced(ps(1).rank));
  EXPECT_THAT(manager_->failure_reason(ps(1).rank),
              testing::AllOf(HasSubstr(coordinator_->name_of(spare(0))), HasSubstr("no space left")));
  EXPECT_TRUE(advance(1));
  EXPECT_EQ(requests_.back().first, spare(1));
}

TEST_F(FailoverManagerTest, SelectsTheNextSpareWhenOneDies) {
  save_checkpoint();
  ASSERT_TRUE(advance(1));
  manager_->on_spare_dead(spare(0));
  EXPECT_THAT(manager_->failure_reason(ps(1).rank), HasSubstr(coordinator_->name_of(spare(0))));
  EXPECT_TRUE(advance(1));
  EXPECT_EQ(requests_.back().first, spare(1));
}

TEST_F(FailoverManagerTest, SkipsASpareThatDiedBefore) {
  save_checkpoint();
  manager_->on_spare_dead(spare(0));
  manager_->on_spare_dead(spare(0));
  EXPECT_EQ(manager_->standbys(), 1);
  ASSERT_TRUE(advance(1));
  EXPECT_EQ(requests_[0].first, spare(1));
}

TEST_F(FailoverManagerTest, ReplacesThePsOnceTheSpareHasTheShards) {
  save_checkpoint();
  ASSERT_TRUE(advance(1));
  EXPECT_EQ(coordinator_->membership().state(ps(1).rank), cluster::MemberState::fenced);
  manager_->on_ps_complete(ps(1).rank, 1);
  EXPECT_EQ(manager_->role_of(spare(0)), "now ps 1");
  EXPECT_EQ(manager_->role_of(spare(1)), "");
  EXPECT_FALSE(manager_->is_being_replaced(ps(1).rank));
}

TEST_F(FailoverManagerTest, IgnoresThePsOfAnotherIncarnation) {
  save_checkpoint();
  ASSERT_TRUE(advance(1));
  for (const std::uint32_t incarnation : {0U, 2U}) {
    manager_->on_ps_complete(ps(1).rank, incarnation);
    EXPECT_EQ(manager_->role_of(spare(0)), "") << incarnation;
  }
}

TEST_F(FailoverManagerTest, AdmitsOnlyTheCurrentIncarnationOfAPs) {
  save_checkpoint();
  EXPECT_EQ(manager_->incarnation_of(ps(1).rank), 0U);
  EXPECT_TRUE(manager_->admits(ps(1), 0)) << "a ps that its agent restarted keeps its incarnation";
  ASSERT_TRUE(advance(1));
  fenced_.clear();
  EXPECT_EQ(manager_->incarnation_of(ps(1).rank), 1U);
  EXPECT_TRUE(manager_->admits(ps(1), 1));
  deliver();
  EXPECT_THAT(fenced_, IsEmpty());
  EXPECT_FALSE(manager_->admits(ps(1), 0));
  deliver();
  EXPECT_THAT(fenced_, ElementsAre(ps(1).rank));
  EXPECT_TRUE(manager_->admits(ps(0), 0));
}

TEST_F(FailoverManagerTest, ReplacesASpareThatBecameAPsAndDied) {
  save_checkpoint();
  ASSERT_TRUE(advance(1));
  manager_->on_ps_complete(ps(1).rank, 1);
  manager_->on_ps_dead(ps(1).rank);
  EXPECT_TRUE(coordinator_->membership().is_lost(spare(0)));
  EXPECT_EQ(manager_->role_of(spare(0)), "");
  ASSERT_TRUE(advance(1));
  EXPECT_EQ(requests_.back().first, spare(1));
  EXPECT_EQ(requests_.back().second.incarnation, 2U);
}

TEST_F(FailoverManagerTest, ContinuesWithTheStateOfAnEarlierCoordinator) {
  save_checkpoint();
  ASSERT_TRUE(advance(1));
  manager_->on_ps_complete(ps(1).rank, 1);
  ASSERT_TRUE(advance(0));
  const FailoverManager restarted(*coordinator_, *contents_);
  EXPECT_EQ(restarted.standbys(), 0);
  EXPECT_EQ(restarted.role_of(spare(0)), "now ps 1");
  EXPECT_EQ(restarted.incarnation_of(ps(1).rank), 1U);
  EXPECT_EQ(restarted.role_of(spare(1)), "now ps 0") << "every ps has answered the new process";
}

TEST_F(FailoverManagerTest, ReplacesAPsOnlyWithItsOwnReplica) {
  start({{"ps", "2"}, {"replicas-of-ps", "2"}});
  ASSERT_TRUE(advance(1));
  ASSERT_EQ(requests_.size(), 1U);
  EXPECT_EQ(requests_[0].first, spare(1));
  EXPECT_EQ(requests_[0].second.source, FailoverRequest::Source::replica);
  manager_->on_spare_dead(spare(1));
  EXPECT_FALSE(advance(1)) << "the other replica belongs to the other ps";
}

TEST_F(FailoverManagerTest, AbandonsAPsWhoseReplicaWasDropped) {
  start({{"ps", "2"}, {"replicas-of-ps", "2"}});
  EXPECT_TRUE(manager_->drop_replica(ps(1)));
  EXPECT_TRUE(manager_->drop_replica(ps(1)));
  EXPECT_FALSE(advance(1));
  EXPECT_THAT(manager_->failure_reason(ps(1).rank), HasSubstr("replica"));
}

TEST_F(FailoverManagerTest, DoesNotDropAReplicaDuringFailover) {
  start({{"ps", "2"}, {"replicas-of-ps", "2"}});
  ASSERT_TRUE(advance(1));
  EXPECT_FALSE(manager_->drop_replica(ps(1)));
  manager_->on_ps_complete(ps(1).rank, 1);
  EXPECT_FALSE(manager_->drop_replica(ps(1)));
}

TEST_F(FailoverManagerTest, DoesNotDropASpareThatIsNotAReplica) {
  EXPECT_FALSE(manager_->drop_replica(ps(1)));
}

}  // namespace
}  // namespace capstan::coordinator

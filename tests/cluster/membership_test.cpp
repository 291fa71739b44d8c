// membership_test.cpp -- state transitions of members, and their locations.
#include "cluster/membership/membership.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/members.hpp"

namespace capstan::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kPs = 1, kWorker = 3, kSpare = 5;

/// Ranks: coordinator 0, ps 1 and 2, workers 3 and 4, spare 5; restarted workers 6 to 9, late ones 10 and 11.
Table table() {
  Table table = table_of(2, 2, 1);
  table.restarts = 2;
  table.late = 2;
  return table;
}

class MembershipTest : public testing::Test {
 protected:
  /// Brings the rank from its initial state to this state.
  static void bring(Membership& members, int rank, MemberState state) {
    static const std::map<MemberState, std::vector<MemberState>> paths{
        {MemberState::absent, {}},
        {MemberState::joining, {MemberState::joining}},
        {MemberState::alive, {MemberState::alive}},
        {MemberState::suspected, {MemberState::alive, MemberState::suspected}},
        {MemberState::dead, {MemberState::dead}},
        {MemberState::fenced, {MemberState::alive, MemberState::fenced}},
        {MemberState::left, {MemberState::alive, MemberState::left}}};
    for (const MemberState step : paths.at(state)) (void)members.set(rank, step);
    ASSERT_EQ(members.state(rank), state);
  }

  Membership members_{table()};
};

const std::vector<MemberState> kStates{MemberState::absent,    MemberState::joining, MemberState::alive,
                                       MemberState::suspected, MemberState::dead,    MemberState::fenced,
                                       MemberState::left};

/// The successors of each state of a worker, independent of the implementation.
const std::map<MemberState, std::set<MemberState>> kOfAWorker{
    {MemberState::absent, {MemberState::joining, MemberState::alive, MemberState::dead, MemberState::fenced}},
    {MemberState::joining, {MemberState::alive, MemberState::dead, MemberState::fenced}},
    {MemberState::alive, {MemberState::suspected, MemberState::dead, MemberState::fenced, MemberState::left}},
    {MemberState::suspected, {MemberState::alive, MemberState::dead, MemberState::fenced}},
    {MemberState::dead, {}},
    {MemberState::fenced, {}},
    {MemberState::left, {}}};

TEST_F(MembershipTest, AllowsOnlyTheTransitionsOfTheDiagram) {
  for (const MemberState before : kStates) {
    for (const MemberState now : kStates) {
      Membership members(table());
      const Member worker = joining_worker(members.table(), 0);
      bring(members, worker.rank, before);
      int notifications = 0;
      members.on_change([&](const Membership::Change& change) {
        ++notifications;
        EXPECT_EQ(change.rank, worker.rank);
        EXPECT_EQ(change.before, before);
        EXPECT_EQ(change.now, now);
        EXPECT_EQ(members.state(change.rank), now) << "the state changes before the notification";
      });
      const bool allowed = kOfAWorker.at(before).contains(now);
      EXPECT_EQ(members.set(worker.rank, now, "why"), allowed)
          << to_string(before) << " to " << to_string(now);
      EXPECT_EQ(members.state(worker.rank), allowed ? now : before);
      EXPECT_EQ(notifications, allowed ? 1 : 0);
      EXPECT_EQ(members.status(worker.rank).cause, allowed ? "why" : "");
    }
  }
}

TEST_F(MembershipTest, APsReturnsAfterItsDeath) {
  EXPECT_TRUE(members_.all_alive(Role::ps));
  EXPECT_TRUE(members_.set(kPs, MemberState::dead, "its process has ended"));
  EXPECT_FALSE(members_.set(kPs, MemberState::dead, "once more")) << "the second report must change nothing";
  EXPECT_EQ(members_.status(kPs).cause, "its process has ended");
  EXPECT_FALSE(members_.all_alive(Role::ps));
  EXPECT_FALSE(members_.set(kPs, MemberState::suspected));
  EXPECT_TRUE(members_.set(kPs, MemberState::alive));
  EXPECT_TRUE(members_.all_alive(Role::ps));
}

TEST_F(MembershipTest, ReplacedPsStaysFencedWhenItsProcessEnds) {
  for (const MemberState before : {MemberState::alive, MemberState::suspected, MemberState::dead}) {
    Membership members(table());
    bring(members, kPs, MemberState::alive);
    if (before != MemberState::alive) (void)members.set(kPs, before);
    ASSERT_EQ(members.state(kPs), before);
    EXPECT_TRUE(members.set(kPs, MemberState::fenced));
    EXPECT_FALSE(members.set(kPs, MemberState::dead));
    EXPECT_TRUE(members.set(kPs, MemberState::alive)) << "a spare may replace it";
  }
}

TEST_F(MembershipTest, SpareAndCoordinatorMayReturn) {
  for (const int rank : {0, kSpare}) {
    EXPECT_TRUE(members_.set(rank, MemberState::dead));
    EXPECT_TRUE(members_.set(rank, MemberState::alive));
  }
}

TEST_F(MembershipTest, InitialMembersAreAliveAndOtherRanksAbsent) {
  for (int rank = 0; rank < 6; ++rank) EXPECT_TRUE(members_.is_alive(rank)) << rank;
  for (int rank = 6; rank < 12; ++rank) EXPECT_EQ(members_.state(rank), MemberState::absent) << rank;
  for (const int impossible : {-1, 12, 1 << 30}) {
    EXPECT_EQ(members_.state(impossible), MemberState::absent);
    EXPECT_FALSE(members_.set(impossible, MemberState::alive));
    EXPECT_FALSE(members_.knows(impossible));
    EXPECT_THROW((void)members_.member(impossible), std::out_of_range);
  }
  EXPECT_EQ(members_.alive(Role::worker), 2);
  EXPECT_EQ(members_.count(Role::spare), 1);
}

TEST_F(MembershipTest, RecordsTimeAndReasonOfAState) {
  const auto before = Membership::Clock::now();
  members_.set(kPs, MemberState::suspected, "no heartbeat");
  const Membership::Status status = members_.status(kPs);
  EXPECT_EQ(status.state, MemberState::suspected);
  EXPECT_GE(status.since, before);
  EXPECT_LE(status.since, Membership::Clock::now());
  EXPECT_EQ(status.cause, "no heartbeat");
  EXPECT_LE(members_.status(kWorker).since, before);
}

TEST_F(MembershipTest, RestartedWorkerHasTheIndexOfTheDeadOne) {
  EXPECT_TRUE(members_.worker_is_alive(0));
  EXPECT_FALSE(members_.has_lost_worker(0));
  members_.set(kWorker, MemberState::dead);
  EXPECT_FALSE(members_.worker_is_alive(0));
  EXPECT_EQ(members_.alive(Role::worker), 1);

  const Member worker = joining_worker(members_.table(), 0);
  members_.add(worker, MemberState::joining);
  EXPECT_THAT(members_.worker_ranks(), ElementsAre(worker.rank, 4));
  EXPECT_FALSE(members_.worker_is_alive(0)) << "a ps does not know it yet";
  members_.set(worker.rank, MemberState::alive);
  EXPECT_TRUE(members_.worker_is_alive(0));
  EXPECT_EQ(members_.alive(Role::worker), 2);
  EXPECT_TRUE(members_.has_lost_worker(0)) << "permanently";
  EXPECT_FALSE(members_.has_lost_worker(1));
  EXPECT_EQ(members_.name_of(worker.rank), "worker 0 (rank 6 on node6)");
}

TEST_F(MembershipTest, LateWorkerHasItsOwnIndex) {
  EXPECT_FALSE(members_.worker_is_alive(2));
  const Member second = joining_worker(members_.table(), -1, 2);
  members_.add(second, MemberState::alive);
  EXPECT_THAT(members_.worker_ranks(), ElementsAre(3, 4, 11)) << "the first late worker is unknown here";
  EXPECT_FALSE(members_.worker_is_alive(2));
  EXPECT_TRUE(members_.worker_is_alive(3));
  EXPECT_EQ(members_.alive(Role::worker), 3);
  EXPECT_FALSE(members_.has_lost_worker(3)) << "it is not dead";
}

TEST_F(MembershipTest, RankThatDiedBeforeItWasKnownStaysDead) {
  const Member worker = joining_worker(members_.table(), 1);
  EXPECT_TRUE(members_.set(worker.rank, MemberState::dead));
  EXPECT_EQ(members_.name_of(worker.rank), "rank 8");
  members_.add(worker, MemberState::alive);
  EXPECT_TRUE(members_.is_lost(worker.rank));
  EXPECT_EQ(members_.alive(Role::worker), 2);
}

TEST_F(MembershipTest, PsHasTheLocationOfItsLastProcess) {
  const Member& first = members_.member(kPs);
  Member now = first;
  now.host = "elsewhere";
  now.pid = 77;
  now.control_address = {std::byte{1}};
  now.data_address = {std::byte{2}};
  members_.move(now, Membership::Address::control);
  EXPECT_EQ(members_.member(Role::ps, 0).host, "elsewhere");
  EXPECT_EQ(first.host, "node1") << "an earlier reference shows the earlier process";
  EXPECT_EQ(members_.table().members[kPs].control_address, now.control_address);
  EXPECT_THAT(members_.table().members[kPs].data_address, IsEmpty());
  members_.move(now, Membership::Address::data);
  EXPECT_EQ(members_.table_now().members[kPs].pid, 77);
  EXPECT_EQ(members_.table_now().members[kPs].data_address, now.data_address);
}

TEST_F(MembershipTest, KeepsTheLatestProcessOfAPsIfOneThreadIsBehind) {
  const auto process = [this](int pid) {
    Member member = members_.member(kPs);
    member.pid = pid;
    return member;
  };
  members_.move(process(71), Membership::Address::control);
  members_.move(process(72), Membership::Address::control);
  members_.move(process(71), Membership::Address::data);
  EXPECT_EQ(members_.member(kPs).pid, 72);
  members_.move(process(72), Membership::Address::data);
  EXPECT_EQ(members_.member(kPs).pid, 72);
  members_.move(process(74), Membership::Address::data);  // this thread skips process 73
  members_.move(process(73), Membership::Address::control);
  members_.move(process(74), Membership::Address::control);
  EXPECT_EQ(members_.member(kPs).pid, 74);
  EXPECT_EQ(members_.table_now().members[kPs].pid, 74);
}

TEST_F(MembershipTest, ResetsToTheInitialMembers) {
  members_.set(kWorker, MemberState::dead);
  members_.add(joining_worker(members_.table(), 0), MemberState::alive);
  members_.set(kPs, MemberState::dead);
  members_.begin_again(table());
  EXPECT_TRUE(members_.is_alive(kWorker));
  EXPECT_TRUE(members_.all_alive(Role::ps));
  EXPECT_EQ(members_.alive(Role::worker), 2);
  EXPECT_THAT(members_.worker_ranks(), ElementsAre(3, 4));
  EXPECT_FALSE(members_.knows(6));
}

TEST_F(MembershipTest, AllowsReadsDuringAChange) {
  const std::jthread changing([this] {
    for (int i = 0; i < 500; ++i) {
      members_.set(kPs, MemberState::suspected, "no heartbeat");
      members_.set(kPs, MemberState::alive);
    }
    members_.set(kPs, MemberState::dead, "its process has ended");
  });
  while (members_.state(kPs) != MemberState::dead) {
    const Membership::Status status = members_.status(kPs);
    EXPECT_EQ(status.cause.empty(), status.state == MemberState::alive);
    EXPECT_GE(members_.alive(Role::ps), 1);
  }
  EXPECT_EQ(members_.alive(Role::ps), 1);
}

}  // namespace
}  // namespace capstan::cluster

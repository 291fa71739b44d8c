// replication_test.cpp -- tests that the replica executes a request before the ps, and the handling of
// different outcomes, of a failover and of a missing replica.
// Tests: src/ps/durability/replication.cpp
// Tests: src/ps/durability/replica_follower.cpp
#include "ps/durability/replication.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "ps/durability/replica_follower.hpp"
#include "ps/shard/store.hpp"
#include "support/expect_error.hpp"
#include "transport/loop/loop.hpp"
#include "transport/message_types.hpp"

namespace capstan::ps {
namespace {

using testing::ElementsAre;

constexpr std::uint16_t kSomeRequest = transport::kFetchAdd;

Settings settings_of_replicas(int replicas_of_ps) {
  Settings settings;
  settings.set_from_flag("ps", "1");
  settings.set_from_flag("replicas-of-ps", std::to_string(replicas_of_ps));
  return settings;
}

/// A coordinator, a ps, a worker and the replica, in one thread. `events_` records events in order.
class ReplicationTest : public testing::Test {
 protected:
  cluster::Runtime& runtime(Role role) {
    for (const auto& candidate : ranks_)
      if (candidate->self().role == role) return *candidate;
    throw Error(Code::not_found, "no such rank");
  }
  void SetUp() override {
    replication_.serve();
    follower_.begin();
    runtime(Role::coordinator)
        .control()
        .on_message(transport::kReplicaLost, [this](const transport::Message&) {
          events_.emplace_back("consent requested");
          runtime(Role::coordinator)
              .control_peer(runtime(Role::coordinator).member(Role::ps, 0))
              .send(transport::kReplicaDropped, {});
        });
  }
  void receive_until(const std::function<bool()>& done) {
    for (int turn = 0; turn < 100 && !done(); ++turn) {
      for (const auto& rank : ranks_) rank->control().progress();
      follower_.apply_some();
      (void)replication_.poll(true);
    }
    if (!done()) throw Error(Code::deadline_exceeded, "the replica has not applied the request");
  }
  std::vector<std::byte> execute(bool fails = false) {
    return replication_.execute(kSomeRequest, 2, to_bytes(7), [this, fails](int from, transport::Bytes) {
      events_.push_back("ps executes for " + std::to_string(from));
      if (fails) throw Error(Code::invalid_argument, "the ps refuses");
      return to_bytes(8);
    });
  }

  transport::LoopHub hub_;
  std::vector<std::shared_ptr<cluster::Runtime>> ranks_ =
      cluster::Runtime::as_threads(settings_of_replicas(2), 4, hub_);
  std::vector<std::string> events_;
  bool replica_refuses_ = false;
  Store copy_{runtime(Role::spare).control(), 1 << 20, 0};
  ReplicaFollower follower_{runtime(Role::spare), copy_, [this](std::uint16_t, int from, transport::Bytes) {
                              events_.push_back("replica executes for " + std::to_string(from));
                              if (replica_refuses_)
                                throw Error(Code::invalid_argument, "the replica refuses");
                            }};
  Replication replication_{runtime(Role::ps),
                           [this](const std::function<bool()>& done) { receive_until(done); }};
};

TEST_F(ReplicationTest, ReplicaExecutesARequestFirst) {
  EXPECT_EQ(from_bytes<int>(execute()), 8);
  EXPECT_THAT(events_, ElementsAre("replica executes for 2", "ps executes for 2"));
}

TEST_F(ReplicationTest, RequestThatBothRefuseKeepsTheReplica) {
  replica_refuses_ = true;
  EXPECT_EQ(error_of(Code::invalid_argument, [&] { execute(true); }), "the ps refuses");
  EXPECT_FALSE(replication_.stream()->dropped());
}

TEST_F(ReplicationTest, ReplicaThatRefusesAValidRequestIsDroppedBeforeTheReply) {
  replica_refuses_ = true;
  EXPECT_EQ(from_bytes<int>(execute()), 8);
  EXPECT_THAT(events_, ElementsAre("replica executes for 2", "ps executes for 2", "consent requested"));
  EXPECT_TRUE(replication_.stream()->dropped());
  events_.clear();
  execute();
  EXPECT_THAT(events_, ElementsAre("ps executes for 2"));
}

TEST_F(ReplicationTest, DroppedReplicaIsFenced) {
  runtime(Role::spare).control().on_message(transport::kFenced, [this](const transport::Message&) {
    events_.emplace_back("replica is fenced");
  });
  replication_.abandon("a test");
  receive_until([&] { return replication_.stream()->dropped(); });
  runtime(Role::spare).control().progress();
  EXPECT_THAT(events_, ElementsAre("consent requested", "replica is fenced"));
}

TEST_F(ReplicationTest, ReplicaThatAcceptsAnInvalidRequestIsDropped) {
  EXPECT_EQ(error_of(Code::invalid_argument, [&] { execute(true); }), "the ps refuses");
  EXPECT_TRUE(replication_.stream()->dropped());
}

TEST_F(ReplicationTest, RequestIsAbortedIfTheReplicaDoesNotApplyIt) {
  follower_.fail_over();  // ignores all further records
  EXPECT_EQ(error_of(Code::deadline_exceeded, [&] { execute(); }), "the replica has not applied the request");
  EXPECT_TRUE(events_.empty()) << "the ps must not execute a request that the replica has not applied";
}

// receive_until of a ps calls poll() every 100 ms only.
TEST_F(ReplicationTest, RecordsAddedDuringARequestAreSentWithoutAPoll) {
  bool added = false;
  Replication unpolled(runtime(Role::ps), [&](const std::function<bool()>& done) {
    if (!std::exchange(added, true)) unpolled.send(transport::kWorkerDead, 2, {});
    for (int turn = 0; turn < 100 && !done(); ++turn) {
      for (const auto& rank : ranks_) rank->control().progress();
      follower_.apply_some();
    }
    if (!done()) throw Error(Code::deadline_exceeded, "the replica has not applied the records");
  });
  unpolled.serve();
  EXPECT_EQ(from_bytes<int>(
                unpolled.execute(kSomeRequest, 2, {}, [](int, transport::Bytes) { return to_bytes(8); })),
            8);
  EXPECT_FALSE(unpolled.stream()->has_pending());
}

TEST_F(ReplicationTest, WhenSafeWaitsForEarlierRecords) {
  replication_.send(transport::kWorkerDead, 2, {});
  bool safe = false;
  replication_.when_safe([&] { safe = true; });
  EXPECT_FALSE(replication_.poll(true));
  EXPECT_FALSE(safe);
  receive_until([&] { return safe; });
}

TEST_F(ReplicationTest, FollowerIgnoresFailoverRequestsOnceItsHeartbeatsStop) {
  cluster::Runtime& coordinator = runtime(Role::coordinator);
  transport::Peer& replica = coordinator.control_peer(coordinator.member(Role::spare, 0));
  const auto order = [&](std::uint32_t incarnation) {
    protocol::FailoverRequest request;
    request.incarnation = incarnation;
    replica.send(transport::kFailover, {}, to_bytes(request));
    runtime(Role::spare).control().progress();
  };
  EXPECT_FALSE(follower_.request());
  order(1);
  ASSERT_TRUE(follower_.request());
  EXPECT_EQ(follower_.request()->incarnation, 1U);
  follower_.stop_heartbeats();
  order(2);
  EXPECT_EQ(follower_.request()->incarnation, 1U);
}

TEST(Replication, HasNoEffectWithoutAReplica) {
  transport::LoopHub hub;
  const auto ranks = cluster::Runtime::as_threads(settings_of_replicas(1), 3, hub);
  const auto ps = std::find_if(ranks.begin(), ranks.end(),
                               [](const auto& rank) { return rank->self().role == Role::ps; });
  Replication none(**ps, [](const std::function<bool()>&) { FAIL() << "no request waits"; });
  EXPECT_EQ(none.stream(), nullptr);
  EXPECT_EQ(
      from_bytes<int>(none.execute(kSomeRequest, 2, {}, [](int, transport::Bytes) { return to_bytes(8); })),
      8);
  none.send(kSomeRequest, 2, {});
  bool called = false;
  none.when_safe([&] { called = true; });
  EXPECT_TRUE(called);
  EXPECT_FALSE(none.poll(true));
  none.abandon("there is none");
  EXPECT_FALSE(none.consent_overdue());
}

}  // namespace
}  // namespace capstan::ps

// replica_rendezvous_test.cpp -- collectives of replicas, also if a replica fails or does not arrive.
#include "strategy/replica_rendezvous.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/expect_error.hpp"

namespace capstan::strategy {
namespace {

using testing::HasSubstr;

constexpr std::chrono::seconds kLong{60};
constexpr std::chrono::milliseconds kShort{50};

detail::Collective sum_of(const int& value, const std::string& name = "sum") {
  return {name, typeid(int), &value, [](std::span<const void* const> values) -> std::shared_ptr<const void> {
            int sum = 0;
            for (const void* one : values) sum += *static_cast<const int*>(one);
            return std::make_shared<const int>(sum);
          }};
}

int run_collective(ReplicaRendezvous& rendezvous, int replica, int value, const std::string& name = "sum") {
  return *std::static_pointer_cast<const int>(rendezvous.run_collective(replica, sum_of(value, name)));
}

/// Runs `body` once on each replica, as ReplicaGroup does; returns the message of each replica's Error.
std::vector<std::string> run(ReplicaRendezvous& rendezvous, const std::function<void(int)>& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(rendezvous.size()));
  rendezvous.begin();
  std::vector<std::jthread> threads;
  for (int replica = 0; replica < rendezvous.size(); ++replica) {
    threads.emplace_back([&, replica] {
      try {
        body(replica);
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(replica)] = error.what();
      }
      rendezvous.leave(replica, !errors[static_cast<std::size_t>(replica)].empty());
    });
  }
  threads.clear();
  rendezvous.end();
  return errors;
}

TEST(ReplicaRendezvous, GivesEveryReplicaTheCombination) {
  int combinations = 0;
  ReplicaRendezvous rendezvous(3, kLong, [&](bool combining) { combinations += combining ? 1 : 0; });
  std::vector<int> sums(3);
  const auto errors = run(rendezvous, [&](int replica) {
    for (int step = 0; step < 100; ++step)
      sums[static_cast<std::size_t>(replica)] += run_collective(rendezvous, replica, replica);
  });
  EXPECT_THAT(errors, testing::Each(""));
  EXPECT_EQ(sums, (std::vector<int>{300, 300, 300}));
  EXPECT_EQ(combinations, 100);
}

TEST(ReplicaRendezvous, SingleReplicaDoesNotWait) {
  ReplicaRendezvous rendezvous(1, kShort, [](bool) {});
  rendezvous.begin();
  EXPECT_EQ(run_collective(rendezvous, 0, 7), 7);
}

TEST(ReplicaRendezvous, NamesAReplicaThatReturned) {
  ReplicaRendezvous rendezvous(2, kLong, [](bool) {});
  const auto errors = run(rendezvous, [&](int replica) {
    if (replica == 0) (void)run_collective(rendezvous, replica, 1);
  });
  EXPECT_THAT(errors[0], HasSubstr("replica 1"));
  EXPECT_FALSE(rendezvous.was_aborted(0));
}

TEST(ReplicaRendezvous, AbortsReplicasThatWaitForOneThatFailed) {
  ReplicaRendezvous rendezvous(2, kLong, [](bool) {});
  const auto errors = run(rendezvous, [&](int replica) {
    if (replica == 1) throw Error(Code::data_loss, "its own reason");
    (void)run_collective(rendezvous, replica, 1);
  });
  EXPECT_THAT(errors[0], HasSubstr("replica 1"));
  EXPECT_TRUE(rendezvous.was_aborted(0));
  EXPECT_FALSE(rendezvous.was_aborted(1));
}

TEST(ReplicaRendezvous, NamesAReplicaThatIsMissingAtTheDeadline) {
  ReplicaRendezvous rendezvous(2, kShort, [](bool) {});
  rendezvous.begin();
  EXPECT_THAT(error_of(Code::deadline_exceeded, [&] { (void)run_collective(rendezvous, 0, 1); }),
              HasSubstr("replica 1"));
  EXPECT_THAT(rendezvous.running(), testing::ElementsAre(0, 1));
  (void)error_of(Code::aborted, [&] { (void)run_collective(rendezvous, 1, 1); });
}

TEST(ReplicaRendezvous, RejectsDifferentCallsAndWorksInTheNextRun) {
  ReplicaRendezvous rendezvous(2, kLong, [](bool) {});
  auto errors = run(rendezvous, [&](int replica) {
    (void)run_collective(rendezvous, replica, 1, replica == 0 ? "a" : "b");
  });
  EXPECT_THAT(errors, testing::Each(HasSubstr("replica 1 calls b")));
  errors = run(rendezvous, [&](int replica) { EXPECT_EQ(run_collective(rendezvous, replica, 2), 4); });
  EXPECT_THAT(errors, testing::Each(""));
}

TEST(ReplicaRendezvous, NamesReplicasInMessages) {
  EXPECT_EQ(name_replicas({1}), "replica 1");
  EXPECT_EQ(name_replicas({0, 2}), "replicas 0, 2");
}

}  // namespace
}  // namespace capstan::strategy

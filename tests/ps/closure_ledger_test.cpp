// closure_ledger_test.cpp -- tests that a repeated closure continues where its first run ended.
#include "ps/ingest/closure_ledger.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

namespace capstan::ps {
namespace {

class ClosureLedgerTest : public testing::Test {
 protected:
  /// Returns which of a run's entries 0, 1, ... are applied.
  std::vector<bool> run(std::uint32_t rank, std::uint64_t closure, std::uint32_t entries,
                        bool again = false) {
    std::vector<bool> counts;
    for (std::uint32_t entry = 0; entry < entries; ++entry) {
      protocol::PushHeader header;
      header.rank = rank;
      header.closure = closure;
      // Two entries per push; every other push also has entries for another ps.
      header.call = entry / 2 * 3;
      header.part = entry % 2;
      header.again = again ? 1 : 0;
      counts.push_back(ledger_.enter(header));
    }
    return counts;
  }

  ClosureLedger ledger_;
};

const std::vector<bool> kAllOfTwo{true, true};

protocol::PushHeader entry_of(std::uint32_t rank, std::uint16_t replica, std::uint32_t call,
                              std::uint32_t part, bool again) {
  protocol::PushHeader header;
  header.rank = rank;
  header.closure = 7;
  header.replica = replica;
  header.call = call;
  header.part = part;
  header.again = again ? 1 : 0;
  return header;
}

TEST_F(ClosureLedgerTest, CountsReplicasInAnyOrder) {
  EXPECT_TRUE(ledger_.enter(entry_of(1, 0, 0, 0, false)));
  EXPECT_TRUE(ledger_.enter(entry_of(1, 1, 0, 0, false)));
  EXPECT_TRUE(ledger_.enter(entry_of(1, 0, 1, 0, false)));
  ledger_.close(1);
  EXPECT_FALSE(ledger_.enter(entry_of(2, 1, 0, 0, true)));
  EXPECT_TRUE(ledger_.enter(entry_of(2, 1, 1, 0, true)));
  EXPECT_FALSE(ledger_.enter(entry_of(2, 0, 0, 0, true)));
  EXPECT_TRUE(ledger_.enter(entry_of(2, 2, 0, 0, true)));
  EXPECT_FALSE(ledger_.enter(entry_of(2, 0, 1, 0, true)));
  EXPECT_TRUE(ledger_.enter(entry_of(2, 0, 2, 0, true)));
  EXPECT_FALSE(ledger_.enter(entry_of(2, 1, 1, 0, true)));
  ledger_.close(2);
  EXPECT_FALSE(ledger_.enter(entry_of(3, 1, 1, 0, true)));
  EXPECT_FALSE(ledger_.enter(entry_of(3, 0, 2, 0, true)));
  EXPECT_TRUE(ledger_.enter(entry_of(3, 2, 0, 1, true)));
}

TEST_F(ClosureLedgerTest, SkippedPushDoesNotShiftOtherPushes) {
  // The first run skips its first push, the second run its second one.
  EXPECT_TRUE(ledger_.enter(entry_of(1, 0, 1, 0, false)));
  EXPECT_TRUE(ledger_.enter(entry_of(1, 0, 2, 0, false)));
  ledger_.close(1);
  EXPECT_FALSE(ledger_.enter(entry_of(2, 0, 0, 0, true))) << "the first run pushed it";
  EXPECT_FALSE(ledger_.enter(entry_of(2, 0, 2, 0, true)));
  EXPECT_TRUE(ledger_.enter(entry_of(2, 0, 2, 1, true)));
  EXPECT_TRUE(ledger_.enter(entry_of(2, 0, 3, 0, true)));
}

TEST_F(ClosureLedgerTest, AppliesAllEntriesOfClosuresThatRunOnce) {
  EXPECT_EQ(run(1, 7, 2), kAllOfTwo);
  EXPECT_EQ(run(2, 8, 2), kAllOfTwo);
  EXPECT_EQ(run(1, 9, 2), kAllOfTwo);
  EXPECT_EQ(run(1, 0, 2), kAllOfTwo) << "outside of closures";
  EXPECT_EQ(run(1, 0, 2), kAllOfTwo);
}

TEST_F(ClosureLedgerTest, SecondRunContinuesAfterTheFirst) {
  run(1, 7, 2);
  ledger_.close(1);
  EXPECT_EQ(run(2, 7, 4, true), (std::vector<bool>{false, false, true, true}));
}

TEST_F(ClosureLedgerTest, ThirdRunContinuesAfterBoth) {
  run(1, 7, 3);
  ledger_.close(1);
  run(2, 7, 1, true);  // interrupted earlier than the first run
  ledger_.close(2);
  EXPECT_EQ(run(3, 7, 4, true), (std::vector<bool>{false, false, false, true}));
  ledger_.close(3);
  EXPECT_EQ(run(4, 7, 5, true), (std::vector<bool>{false, false, false, false, true}));
}

TEST_F(ClosureLedgerTest, RetainsClosuresBeforeTheLatest) {
  run(1, 7, 2);
  run(1, 8, 2);  // 7 has ended; the worker dies before it reports the result
  ledger_.close(1);
  EXPECT_EQ(run(2, 7, 2, true), (std::vector<bool>{false, false}));
  EXPECT_EQ(run(2, 8, 2, true), (std::vector<bool>{false, false}));
  EXPECT_EQ(run(2, 9, 2, true), kAllOfTwo) << "its first run did not push to this ps";
}

TEST_F(ClosureLedgerTest, BoundsMemoryOfDeadWorkers) {
  // Many closures on many workers, all of which die; the latest ones are retained.
  std::uint64_t closure = 0;
  const auto workers = ClosureLedger::kRetainedDeadWorkers + 1;
  for (std::uint32_t rank = 0; rank < workers; ++rank) {
    for (std::size_t i = 0; i < 2 * ClosureLedger::kLatestClosures; ++i) run(rank, ++closure, 1);
    ledger_.close(static_cast<int>(rank));
  }
  EXPECT_EQ(run(100, closure, 2, true), (std::vector<bool>{false, true}));
  EXPECT_EQ(run(100, 1, 1, true), std::vector<bool>{true}) << "its counts were evicted";
  ledger_.close(12345);  // a rank that never pushed
}

/// Ledger in persistent memory, of a job whose coordinator may restart.
class OpenClosuresTest : public ClosureLedgerTest {
 protected:
  static constexpr std::size_t kLedgerRanks = 8;

  explicit OpenClosuresTest(std::size_t replicas = 1)
      : capacity_{.replicas = replicas, .open = ClosureLedger::kOpen},
        memory_(ClosureLedger::bytes_for(kLedgerRanks, capacity_) / sizeof(std::uint64_t)) {
    restart_ps();
  }
  void restart_ps() { ledger_ = ClosureLedger(capacity_, std::as_writable_bytes(std::span(memory_))); }
  /// Returns the number of applied entries of closures [first, end), with one entry each.
  std::uint64_t counted(std::uint32_t rank, std::uint64_t first, std::uint64_t end, bool again) {
    std::uint64_t sum = 0;
    for (std::uint64_t closure = first; closure < end; ++closure)
      sum += run(rank, closure, 1, again).front() ? 1 : 0;
    return sum;
  }

  ClosureLedger::Capacity capacity_;
  std::vector<std::uint64_t> memory_;
};

TEST_F(OpenClosuresTest, ClosureOfALiveWorkerCanRunElsewhere) {
  run(1, 7, 2);
  run(1, 8, 1);
  run(2, 9, 2);
  EXPECT_EQ(run(2, 8, 2, true), (std::vector<bool>{false, true}));
  EXPECT_EQ(run(1, 9, 2, true), (std::vector<bool>{false, false}));
  EXPECT_EQ(run(1, 7, 3, true), (std::vector<bool>{false, false, true}))
      << "on the same worker, not its latest closure";
  EXPECT_EQ(run(2, 10, 2, true), kAllOfTwo) << "its first run did not begin";
  EXPECT_EQ(run(1, 8, 3, true), (std::vector<bool>{false, false, true}));
}

TEST_F(OpenClosuresTest, LatestClosureOfAWorkerCanHaveContinuedOnAnother) {
  run(1, 7, 1);        // the latest closure of worker 1
  run(2, 7, 3, true);  // after a restart of the coordinator
  EXPECT_EQ(run(1, 7, 4, true), (std::vector<bool>{false, false, false, true})) << "after another restart";
}

TEST_F(OpenClosuresTest, RetainsAllOpenClosuresAcrossRestarts) {
  constexpr std::uint64_t kFirst = 1 + ClosureLedger::kOpen / 3;  // after a recorded step
  constexpr std::uint64_t kEnd = kFirst + 50'000;
  EXPECT_EQ(counted(1, 1, kFirst, false), kFirst - 1);
  EXPECT_EQ(counted(1, kFirst, kEnd, false), kEnd - kFirst);
  // The second coordinator runs these closures before it is killed, and the third runs them again.
  EXPECT_EQ(counted(1, kFirst, kFirst + 30'000, true), 0U);
  EXPECT_EQ(counted(1, kFirst, kFirst + 30'000, true), 0U);
  restart_ps();
  EXPECT_EQ(counted(2, kFirst, kEnd, true), 0U);
}

TEST_F(OpenClosuresTest, LaterClosureReusesTheSlotOfAClosedOne) {
  EXPECT_EQ(counted(1, 5, 6, false), 1U);
  EXPECT_EQ(counted(2, 5 + ClosureLedger::kOpen, 6 + ClosureLedger::kOpen, false), 1U);
  EXPECT_EQ(counted(3, 5 + ClosureLedger::kOpen, 6 + ClosureLedger::kOpen, true), 0U);
  // A closure older than the one in the slot is retained only in the row of its worker.
  EXPECT_EQ(counted(4, 5, 6, true), 1U);
  EXPECT_EQ(counted(4, 5, 6, true), 0U);
  EXPECT_EQ(counted(3, 5 + ClosureLedger::kOpen, 6 + ClosureLedger::kOpen, true), 0U);
}

TEST_F(OpenClosuresTest, ClosuresForOneWorkerUseNoSlot) {
  run(1, 4, 1);
  run(1, protocol::kForOneWorker + 4, 1);
  EXPECT_EQ(run(2, protocol::kForOneWorker + 4, 1, true), std::vector<bool>{true})
      << "such a closure never runs on another worker, so worker 2 has its own count";
  EXPECT_EQ(run(2, 4, 1, true), std::vector<bool>{false});
}

TEST_F(OpenClosuresTest, UndoesAnEntryForEveryWorker) {
  run(1, 7, 2);
  protocol::PushHeader second;
  second.rank = 1;
  second.closure = 7;
  second.part = 1;
  ledger_.set_entered(second, 1);
  restart_ps();
  EXPECT_EQ(run(2, 7, 2, true), (std::vector<bool>{false, true}));
}

class OpenReplicasTest : public OpenClosuresTest {
 protected:
  static constexpr std::uint16_t kReplicas = 2;
  OpenReplicasTest() : OpenClosuresTest(kReplicas) {}

  std::uint64_t counted_by_all(std::uint32_t rank, std::uint64_t closures, bool again) {
    std::uint64_t sum = 0;
    for (std::uint64_t closure = 1; closure <= closures; ++closure) {
      for (std::uint16_t replica = 0; replica < kReplicas; ++replica) {
        protocol::PushHeader header = entry_of(rank, replica, 0, 0, again);
        header.closure = closure;
        sum += ledger_.enter(header) ? 1 : 0;
      }
    }
    return sum;
  }
};

TEST_F(OpenReplicasTest, CountsEachReplicaOfAllOpenClosuresOnce) {
  EXPECT_EQ(counted_by_all(1, 50'000, false), 100'000U);
  EXPECT_EQ(counted_by_all(2, 50'000, true), 0U);
  restart_ps();
  EXPECT_EQ(counted_by_all(3, 50'000, true), 0U);
}

TEST_F(ClosureLedgerTest, RecoversRowsFromPersistentMemory) {
  constexpr ClosureLedger::Capacity kFew{.of_worker = 4};
  std::vector<std::uint64_t> memory(ClosureLedger::bytes_for(3, kFew) / sizeof(std::uint64_t));
  ledger_ = ClosureLedger(kFew, std::as_writable_bytes(std::span(memory)));
  for (std::uint64_t closure = 1; closure <= 6; ++closure) run(1, closure, 1);
  ledger_ = ClosureLedger(kFew, std::as_writable_bytes(std::span(memory)));
  ledger_.close(1);
  EXPECT_EQ(run(2, 2, 1, true), std::vector<bool>{true}) << "only the latest four are retained";
  for (std::uint64_t closure = 3; closure <= 6; ++closure) {
    EXPECT_EQ(run(2, closure, 2, true), (std::vector<bool>{false, true})) << closure;
  }
}

}  // namespace
}  // namespace capstan::ps

// closure_ledger_test.cpp -- a closure that is run again is applied where its first run ended.
#include "store/closure_ledger.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

namespace capstan::store {
namespace {

class ClosureLedgerTest : public testing::Test {
 protected:
  /// Which of a run's entries 0, 1, ... count.
  std::vector<bool> run(std::uint32_t rank, std::uint64_t closure, std::uint32_t entries,
                        bool again = false) {
    std::vector<bool> counts;
    for (std::uint32_t entry = 0; entry < entries; ++entry) {
      shard::PushHeader header;
      header.rank = rank;
      header.closure = closure;
      // Two entries a push, by turns to this ps and to another one as well.
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

shard::PushHeader entry_of(std::uint32_t rank, std::uint16_t replica, std::uint32_t call, std::uint32_t part,
                           bool again) {
  shard::PushHeader header;
  header.rank = rank;
  header.closure = 7;
  header.replica = replica;
  header.call = call;
  header.part = part;
  header.again = again ? 1 : 0;
  return header;
}

TEST_F(ClosureLedgerTest, ReplicasComeInAnyOrder) {
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

TEST_F(ClosureLedgerTest, APushThatIsLeftOutInOneRunDoesNotMoveTheOthers) {
  // The first run leaves its first push out, the second run its second one.
  EXPECT_TRUE(ledger_.enter(entry_of(1, 0, 1, 0, false)));
  EXPECT_TRUE(ledger_.enter(entry_of(1, 0, 2, 0, false)));
  ledger_.close(1);
  EXPECT_FALSE(ledger_.enter(entry_of(2, 0, 0, 0, true))) << "the closure was there already";
  EXPECT_FALSE(ledger_.enter(entry_of(2, 0, 2, 0, true)));
  EXPECT_TRUE(ledger_.enter(entry_of(2, 0, 2, 1, true)));
  EXPECT_TRUE(ledger_.enter(entry_of(2, 0, 3, 0, true)));
}

TEST_F(ClosureLedgerTest, WhatRunsOnceCounts) {
  EXPECT_EQ(run(1, 7, 2), kAllOfTwo);
  EXPECT_EQ(run(2, 8, 2), kAllOfTwo);
  EXPECT_EQ(run(1, 9, 2), kAllOfTwo);
  EXPECT_EQ(run(1, 0, 2), kAllOfTwo) << "outside of closures";
  EXPECT_EQ(run(1, 0, 2), kAllOfTwo);
}

TEST_F(ClosureLedgerTest, ASecondRunGoesOnWhereTheFirstWasCutOff) {
  run(1, 7, 2);
  ledger_.close(1);
  EXPECT_EQ(run(2, 7, 4, true), (std::vector<bool>{false, false, true, true}));
}

TEST_F(ClosureLedgerTest, AThirdRunKnowsOfBoth) {
  run(1, 7, 3);
  ledger_.close(1);
  run(2, 7, 1, true);  // cut off sooner than the first
  ledger_.close(2);
  EXPECT_EQ(run(3, 7, 4, true), (std::vector<bool>{false, false, false, true}));
  ledger_.close(3);
  EXPECT_EQ(run(4, 7, 5, true), (std::vector<bool>{false, false, false, false, true}));
}

TEST_F(ClosureLedgerTest, ClosuresThatEndedBeforeTheLastAreKnownToo) {
  run(1, 7, 2);
  run(1, 8, 2);  // 7 has ended; the worker dies before it could say so
  ledger_.close(1);
  EXPECT_EQ(run(2, 7, 2, true), (std::vector<bool>{false, false}));
  EXPECT_EQ(run(2, 8, 2, true), (std::vector<bool>{false, false}));
  EXPECT_EQ(run(2, 9, 2, true), kAllOfTwo) << "it never reached this ps";
}

TEST_F(ClosureLedgerTest, TheDeadTakeBoundedRoom) {
  // Many closures on many workers, all of which die; the last ones are known.
  std::uint64_t closure = 0;
  const auto workers = ClosureLedger::kMostOfTheDead + 1;
  for (std::uint32_t rank = 0; rank < workers; ++rank) {
    for (std::size_t i = 0; i < 2 * ClosureLedger::kRemembered; ++i) run(rank, ++closure, 1);
    ledger_.close(static_cast<int>(rank));
  }
  EXPECT_EQ(run(100, closure, 2, true), (std::vector<bool>{false, true}));
  EXPECT_EQ(run(100, 1, 1, true), std::vector<bool>{true}) << "no worker holds so many closures";
  ledger_.close(12345);  // one that pushed nothing
}

TEST_F(ClosureLedgerTest, WhatALivingWorkerRanMayRunAgainElsewhereOnceItWasGathered) {
  run(1, 7, 2);
  run(1, 8, 1);
  run(2, 9, 2);
  ledger_.gather();
  EXPECT_EQ(run(2, 8, 2, true), (std::vector<bool>{false, true}));
  EXPECT_EQ(run(1, 9, 2, true), (std::vector<bool>{false, false}));
  EXPECT_EQ(run(1, 7, 3, true), (std::vector<bool>{false, false, true}))
      << "on the same worker, not its last";
  EXPECT_EQ(run(2, 10, 2, true), kAllOfTwo) << "never begun";
  ledger_.gather();
  EXPECT_EQ(run(1, 8, 3, true), (std::vector<bool>{false, false, true}));
}

TEST_F(ClosureLedgerTest, WhatIsBeforeARecordedStepIsForgottenAndTheRestIsNot) {
  ledger_ = ClosureLedger({}, ClosureLedger::kRememberedForTheCoordinator);
  const std::uint64_t closures = ClosureLedger::kRememberedForTheCoordinator;
  for (std::uint64_t closure = 1; closure <= closures; ++closure) run(1, closure, 1);
  ledger_.forget_before(1000);
  ledger_.gather();
  EXPECT_EQ(run(2, 999, 1, true), std::vector<bool>{true});
  EXPECT_EQ(run(2, 1000, 1, true), std::vector<bool>{false});
  EXPECT_EQ(run(2, closures, 1, true), std::vector<bool>{false});
  ledger_.forget_before(closures);
  EXPECT_EQ(run(3, 1001, 1, true), std::vector<bool>{true});
  EXPECT_EQ(run(3, closures, 1, true), std::vector<bool>{false});
  run(4, shard::kForOneWorker + 1, 1);
  ledger_.gather();
  EXPECT_EQ(run(5, shard::kForOneWorker + 1, 1, true), std::vector<bool>{true}) << "it never runs elsewhere";
}

TEST_F(ClosureLedgerTest, RowsThatOutliveTheProcessAreGatheredByTheNext) {
  constexpr std::size_t kFew = 4;
  std::vector<std::uint64_t> memory(3 * ClosureLedger::row_bytes(kFew) / sizeof(std::uint64_t));
  ledger_ = ClosureLedger(std::as_writable_bytes(std::span(memory)), kFew);
  for (std::uint64_t closure = 1; closure <= 6; ++closure) run(1, closure, 1);
  ledger_ = ClosureLedger(std::as_writable_bytes(std::span(memory)), kFew);
  ledger_.gather();
  EXPECT_EQ(run(2, 2, 1, true), std::vector<bool>{true}) << "the last four are remembered";
  for (std::uint64_t closure = 3; closure <= 6; ++closure) {
    EXPECT_EQ(run(2, closure, 2, true), (std::vector<bool>{false, true})) << closure;
  }
}

}  // namespace
}  // namespace capstan::store

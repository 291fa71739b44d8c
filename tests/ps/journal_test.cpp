// journal_test.cpp -- entries, logged groups, and their undo in the next process.
#include "ps/durability/journal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "capstan/error.hpp"
#include "ps/journal_memory.hpp"
#include "support/expect_error.hpp"

namespace capstan::ps {
namespace {

/// A shard of values and two slots, and a journal for it. "The next process" opens the same memory.
class JournalTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kRows = 200;
  static constexpr std::uint64_t kValueBytes = 2;  // of a row of `values_`
  static constexpr std::uint64_t kSlotBytes = 4;

  JournalTest() {
    for (auto* array : {&values_, &slot0_, &slot1_}) {
      for (std::size_t i = 0; i < array->size(); ++i) (*array)[i] = static_cast<std::byte>(i * 7 + 1);
    }
  }

  void begin(std::uint64_t position = 0, std::int64_t steps = 0, std::uint64_t entered = 0) {
    journal_.begin(header_, position, steps, entered);
  }
  /// Logs rows of all arrays, then changes them to `to`.
  void change(const std::vector<std::uint32_t>& rows, std::byte to, std::size_t list = 0) {
    Journal::Group group;
    group.rows = rows.data();
    group.count = rows.size();
    group.bases[0] = values_.data();
    group.bases[1] = slot0_.data();
    group.bases[2] = slot1_.data();
    group.bytes[0] = kValueBytes;
    group.bytes[1] = group.bytes[2] = kSlotBytes;
    journal_.log(group, list);
    for (const std::uint32_t row : rows) {
      std::fill_n(values_.begin() + row * kValueBytes, kValueBytes, to);
      std::fill_n(slot0_.begin() + row * kSlotBytes, kSlotBytes, to);
      std::fill_n(slot1_.begin() + row * kSlotBytes, kSlotBytes, to);
    }
  }
  void undo_in_next_process() {
    std::byte* const bases[Journal::kArrays] = {values_.data(), slot0_.data(), slot1_.data()};
    memory_.open().undo(bases);
  }
  struct Arrays {
    std::vector<std::byte> values, slot0, slot1;
    bool operator==(const Arrays&) const = default;
  };
  Arrays arrays() const { return {values_, slot0_, slot1_}; }

  std::vector<std::byte> values_ = std::vector<std::byte>(kRows * kValueBytes);
  std::vector<std::byte> slot0_ = std::vector<std::byte>(kRows * kSlotBytes);
  std::vector<std::byte> slot1_ = std::vector<std::byte>(kRows * kSlotBytes);
  protocol::PushHeader header_;
  JournalMemory memory_{4096};
  Journal journal_ = memory_.open();
};

TEST_F(JournalTest, HasNoEntryInZeroedMemory) {
  EXPECT_EQ(journal_.last().number, 0U);
  const Arrays before = arrays();
  undo_in_next_process();
  EXPECT_EQ(arrays(), before);
}

TEST_F(JournalTest, NextProcessFindsTheLatestEntry) {
  header_.variable = 3;
  header_.shard = 4;
  header_.rank = 5;
  begin(64, 7, 8);
  header_.kind = protocol::PushKind::dense;
  header_.variable = 6;
  begin(192, 9, 10);
  const Journal::Entry entry = memory_.open().last();
  EXPECT_EQ(entry.number, 2U);
  EXPECT_EQ(entry.header.kind, protocol::PushKind::dense);
  EXPECT_EQ(entry.header.variable, 6U);
  EXPECT_EQ(entry.header.shard, 4U);
  EXPECT_EQ(entry.header.rank, 5U);
  EXPECT_EQ(entry.position, 192U);
  EXPECT_EQ(entry.steps, 9);
  EXPECT_EQ(entry.entered, 10U);
  EXPECT_EQ(entry.logged, 0U);
}

TEST_F(JournalTest, NextProcessFindsNoRetiredEntry) {
  begin();
  begin();
  journal_.retire();
  EXPECT_EQ(memory_.open().last().number, 0U);
  begin(64);
  EXPECT_EQ(memory_.open().last().number, 3U);
  EXPECT_EQ(memory_.open().last().position, 64U);
}

TEST_F(JournalTest, UndoRestoresTheLoggedRowsOfEveryArray) {
  const Arrays before = arrays();
  begin();
  change({199, 0, 17}, std::byte{0xEE});
  change({3}, std::byte{0xDD});
  EXPECT_NE(arrays(), before);
  undo_in_next_process();
  EXPECT_EQ(arrays(), before);
}

TEST_F(JournalTest, UndoRestoresTheOldestContentsOfARowThatSeveralGroupsChange) {
  const Arrays before = arrays();
  begin();
  change({5, 6}, std::byte{0xAA});
  change({6, 7}, std::byte{0xBB});
  change({7, 5}, std::byte{0xCC});
  undo_in_next_process();
  EXPECT_EQ(arrays(), before);
}

TEST_F(JournalTest, UndoRestoresARowRepeatedInAGroup) {
  const Arrays before = arrays();
  begin();
  change({5, 6, 5}, std::byte{0xAA});
  undo_in_next_process();
  EXPECT_EQ(arrays(), before);
}

TEST_F(JournalTest, UndoRestoresAGroupOfMaximumSize) {
  const Arrays before = arrays();
  std::vector<std::uint32_t> rows(Journal::kGroupRows);
  std::iota(rows.begin(), rows.end(), 100U);
  begin();
  change(rows, std::byte{0xAA});
  change({1}, std::byte{0xBB});
  undo_in_next_process();
  EXPECT_EQ(arrays(), before);
}

TEST_F(JournalTest, UndoRestoresARangeOfBytesPerArray) {
  const Arrays before = arrays();
  Journal::Group group;
  group.bases[0] = values_.data();
  group.bases[1] = slot0_.data();
  group.offsets[0] = 11;
  group.offsets[1] = 22;
  group.bytes[0] = 33;
  group.bytes[1] = 66;
  begin();
  journal_.log(group);
  std::fill_n(values_.begin() + 11, 33, std::byte{0xEE});
  std::fill_n(slot0_.begin() + 22, 66, std::byte{0xEE});
  undo_in_next_process();
  EXPECT_EQ(arrays(), before);
}

TEST_F(JournalTest, UndoPreservesArraysThatWereNotLogged) {
  Journal::Group group;
  group.bases[0] = values_.data();
  group.bytes[0] = group.bytes[1] = group.bytes[2] = 8;
  begin();
  journal_.log(group);
  const std::vector<std::byte> values = values_;
  std::fill_n(values_.begin(), 8, std::byte{0xEE});
  std::fill_n(slot0_.begin(), 8, std::byte{0xDD});
  // A shard without slots has no addresses for them.
  std::byte* const bases[Journal::kArrays] = {values_.data()};
  memory_.open().undo(bases);
  EXPECT_EQ(values_, values);
  EXPECT_EQ(slot0_[0], std::byte{0xDD});
}

TEST_F(JournalTest, UndoRestoresTheRowsOfEveryList) {
  const Arrays before = arrays();
  begin();
  change({5, 6}, std::byte{0xAA}, Journal::kLists - 1);
  change({0, 199}, std::byte{0xBB}, 0);
  change({6, 7}, std::byte{0xCC}, Journal::kLists - 1);
  undo_in_next_process();
  EXPECT_EQ(arrays(), before);
  begin();
  change({8}, std::byte{0xDD}, 1);
  undo_in_next_process();
  EXPECT_EQ(arrays(), before) << "the lists of the previous entry do not count";
}

TEST_F(JournalTest, UndoIsIdempotentAfterAnInterruption) {
  const Arrays before = arrays();
  begin();
  change({5, 6}, std::byte{0xAA});
  change({6, 7}, std::byte{0xBB});
  const Arrays changed = arrays();
  undo_in_next_process();
  // State after a killed undo: the last group is restored, the first is not.
  slot1_ = changed.slot1;
  undo_in_next_process();
  EXPECT_EQ(arrays(), before);
  undo_in_next_process();
  EXPECT_EQ(arrays(), before);
}

TEST_F(JournalTest, UndoPreservesEarlierEntries) {
  begin();
  change({5, 6}, std::byte{0xAA});
  begin();
  const Arrays committed = arrays();
  undo_in_next_process();
  EXPECT_EQ(arrays(), committed) << "an entry without groups";
  change({6, 7}, std::byte{0xBB});
  undo_in_next_process();
  EXPECT_EQ(arrays(), committed);
}

TEST_F(JournalTest, RejectsAnEntryLargerThanItsMemory) {
  const Arrays before = arrays();
  begin();
  const std::vector<std::uint32_t> rows{1, 2, 3};
  (void)error_of(Code::internal, [&] {
    for (std::uint64_t group = 0; group < Journal::bytes_for(4096) / protocol::kCacheLine; ++group)
      change(rows, static_cast<std::byte>(group));
  });
  EXPECT_TRUE(memory_.is_guard_intact());
  // The rows of the rejected group have not changed, and the groups before it can be undone.
  undo_in_next_process();
  EXPECT_EQ(arrays(), before);
  begin();
  EXPECT_NO_THROW(change(rows, std::byte{0xEE})) << "a rejected entry takes no memory from the next";
}

TEST_F(JournalTest, WritesNothingBeyondItsMemory) {
  // The length of the first group varies, so that the last group ends at every line near the memory's end.
  for (std::uint64_t first = 1; first < kRows * kValueBytes; first += protocol::kCacheLine) {
    JournalMemory memory(4096);
    Journal journal = memory.open();
    journal.begin(header_, 0, 0, 0);
    Journal::Group group;
    group.bases[0] = values_.data();
    group.bytes[0] = first;
    (void)error_of(Code::internal, [&] {
      for (std::uint64_t i = 0; i < Journal::bytes_for(4096) / protocol::kCacheLine; ++i) {
        journal.log(group);
        group.bytes[0] = 1;
      }
    });
    EXPECT_TRUE(memory.is_guard_intact()) << first;
  }
}

}  // namespace
}  // namespace capstan::ps

// row_usage_test.cpp -- rows that are chosen for eviction.
#include "ps/shard/row_usage.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

namespace capstan::ps {
namespace {

using Rows = std::vector<std::uint32_t>;

/// Rows 1 to kRows, all in use.
class RowUsageTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kRows = 1000;

  RowUsageTest() { header_.rows_end = kRows + 1; }
  RowUsage usage(WhenFull when_full) {
    RowUsage made({.when_full = when_full}, kRows, header_, states_.data());
    for (std::uint32_t row = 1; row <= kRows; ++row) states_[row] = made.state_of_new_row();
    return made;
  }
  /// Removes `count` rows.
  std::set<std::uint32_t> evict(RowUsage& usage, std::size_t count) {
    std::set<std::uint32_t> rows;
    while (rows.size() < count) {
      const std::uint32_t row = usage.choose({});
      EXPECT_TRUE(rows.insert(row).second);
      states_[row] = 0;
    }
    return rows;
  }
  static Rows range(std::uint32_t first, std::uint32_t last) {
    Rows rows(last - first + 1);
    std::iota(rows.begin(), rows.end(), first);
    return rows;
  }

  protocol::TableHeader header_{};
  std::vector<std::uint32_t> states_ = std::vector<std::uint32_t>(kRows + 1);
};

TEST_F(RowUsageTest, LeastRecentlyPushedRowsAreChosen) {
  RowUsage least_recent = usage(WhenFull::evict_least_recent);
  Rows even;
  for (std::uint32_t row = 2; row <= kRows; row += 2) even.push_back(row);
  least_recent.count(even, true);
  for (const std::uint32_t row : evict(least_recent, 60)) EXPECT_EQ(row % 2, 1U) << row;
}

TEST_F(RowUsageTest, LeastFrequentlyPushedRowsAreChosen) {
  RowUsage least_frequent = usage(WhenFull::evict_least_frequent);
  for (int time = 0; time < 5; ++time) least_frequent.count(range(1, 500), true);
  least_frequent.count(range(501, kRows), true);  // more recent, less frequent
  for (const std::uint32_t row : evict(least_frequent, 60)) EXPECT_GT(row, 500U);
}

TEST_F(RowUsageTest, PushCountsAreHalvedAsTimePasses) {
  RowUsage least_frequent = usage(WhenFull::evict_least_frequent);
  for (int time = 0; time < 100; ++time) least_frequent.count(range(1, 500), true);
  // Pushes of 80 times the capacity halve the counts ten times, so 100 earlier pushes count less than 4.
  for (int round = 0; round < 160; ++round) least_frequent.count(range(501, kRows), true);
  for (std::uint32_t row = 501; row <= kRows; ++row) states_[row] = least_frequent.state_of_new_row();
  for (int time = 0; time < 3; ++time) least_frequent.count(range(501, kRows), true);
  for (const std::uint32_t row : evict(least_frequent, 60)) EXPECT_LE(row, 500U);
}

TEST_F(RowUsageTest, NoRowIsChosenTwice) {
  RowUsage least_recent = usage(WhenFull::evict_least_recent);
  Rows chosen;
  for (std::uint32_t i = 0; i + 1 < kRows; ++i) chosen.push_back(least_recent.choose(chosen));
  const std::set<std::uint32_t> different(chosen.begin(), chosen.end());
  EXPECT_EQ(different.size(), chosen.size());
  EXPECT_FALSE(different.contains(protocol::kDefaultRow));
}

TEST_F(RowUsageTest, RestoredRowsKeepTheirPushCount) {
  RowUsage least_frequent = usage(WhenFull::evict_least_frequent);
  for (int time = 0; time < 5; ++time) least_frequent.count(range(1, 500), true);
  const std::uint32_t saved = states_[1];
  header_.pushed = 0;  // a new process
  for (std::uint32_t row = 1; row <= kRows; ++row)
    states_[row] =
        row <= 500 ? least_frequent.state_of_restored_row(saved) : least_frequent.state_of_new_row();
  for (const std::uint32_t row : evict(least_frequent, 60)) EXPECT_GT(row, 500U);
}

TEST_F(RowUsageTest, FindsRowsThatAreOlderThanTheLimit) {
  constexpr std::uint64_t kAge = 50;
  RowUsage by_age({.when_full = WhenFull::refuse, .evict_after = kAge}, kRows, header_, states_.data());
  for (std::uint32_t row = 1; row <= kRows; ++row) states_[row] = by_age.state_of_new_row();
  Rows found(kRows);
  const auto find_old = [&] {
    std::uint64_t left = kRows;
    return by_age.find_old(found, &left);
  };
  for (std::uint64_t push = 0; push < kAge; ++push) {
    by_age.count(range(1, 100), true);
    by_age.count(range(101, 200), false);  // part of the same push
  }
  EXPECT_EQ(find_old(), 0U);
  by_age.count(range(1, 200), true);
  EXPECT_EQ(find_old(), kRows - 200U);
  EXPECT_EQ(std::set<std::uint32_t>(found.begin(), found.begin() + kRows - 200).size(), kRows - 200U);
  EXPECT_GE(by_age.rows_to_examine() * kAge, 5 * kRows);
  EXPECT_EQ(by_age.excess(), 0U);
}

}  // namespace
}  // namespace capstan::ps

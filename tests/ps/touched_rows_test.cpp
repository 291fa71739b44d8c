// touched_rows_test.cpp -- tests that the list has each added row once, in order.
#include "ps/shard/touched_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace capstan::ps {
namespace {

TEST(TouchedRows, ListsAddedRows) {
  std::mt19937 random(1);
  for (const std::uint64_t rows : {0U, 1U, 63U, 64U, 65U, 128U, 1000U}) {
    for (int round = 0; round < 20; ++round) {
      TouchedRows touched(5, rows);
      std::set<std::uint32_t> expected;
      for (unsigned i = 0; rows > 0 && i < random() % 6; ++i) {
        const auto first = static_cast<std::uint32_t>(random() % rows);
        const auto count = static_cast<std::uint32_t>(random() % (rows - first + 1));
        touched.add(first, count);
        for (std::uint32_t row = first; row < first + count; ++row) expected.insert(row);
        const std::vector<std::uint32_t> some{static_cast<std::uint32_t>(random() % rows), first, first};
        touched.add(some);
        expected.insert(some.begin(), some.end());
      }
      EXPECT_EQ(touched.list(), std::vector<std::uint32_t>(expected.begin(), expected.end())) << rows;
    }
  }
}

TEST(TouchedRows, AddAllAddsEveryRow) {
  TouchedRows touched(1, 67);
  touched.add_all();
  EXPECT_EQ(touched.list().size(), 67U);
  EXPECT_EQ(touched.list().back(), 66U);
  EXPECT_EQ(touched.mark(), 1U);
}

}  // namespace
}  // namespace capstan::ps

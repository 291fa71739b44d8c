// row_sort_test.cpp -- stable sorting of rows by number, and running maxima.
// Tests: src/gpu/cuda_call.hpp
#include "gpu/row_sort.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "tests/gpu/gpu_to_test.hpp"

namespace capstan::gpu {
namespace {

using Numbers = std::vector<std::uint32_t>;

class RowSortTest : public OnGpu {
 protected:
  /// Returns the sorted rows and their order.
  std::pair<Numbers, Numbers> sort(const Numbers& rows, const Numbers& order, int bits) const {
    const auto count = static_cast<std::uint32_t>(rows.size());
    const Memory scratch(0, scratch_bytes(*stream_, count));
    const auto device_rows = to_gpu(rows);
    const auto device_order = to_gpu(order);
    const Values<std::uint32_t> sorted(0, count);
    const Values<std::uint32_t> sorted_order(0, count);
    sort_rows(*stream_, scratch, count, bits, device_rows.data(), sorted.data(), device_order.data(),
              sorted_order.data());
    return {to_host(sorted), to_host(sorted_order)};
  }
  Numbers maxima(const Numbers& numbers) const {
    const auto count = static_cast<std::uint32_t>(numbers.size());
    const Memory scratch(0, scratch_bytes(*stream_, count));
    const auto device_numbers = to_gpu(numbers);
    const Values<std::uint32_t> out(0, count);
    running_maximum(*stream_, scratch, count, device_numbers.data(), out.data());
    return to_host(out);
  }
};

TEST_F(RowSortTest, SortsStably) {
  const auto [rows, order] = sort({5, 1, 5, 0, 1, 5}, {10, 11, 12, 13, 14, 15}, 3);
  EXPECT_EQ(rows, (Numbers{0, 1, 1, 5, 5, 5}));
  EXPECT_EQ(order, (Numbers{13, 11, 14, 10, 12, 15}));
}

TEST_F(RowSortTest, SortsOneRow) {
  const auto [rows, order] = sort({3}, {9}, 2);
  EXPECT_EQ(rows, Numbers{3});
  EXPECT_EQ(order, Numbers{9});
}

TEST_F(RowSortTest, SortsByAllBitsAsUnsignedNumbers) {
  const auto [rows, order] = sort({0xFFFFFFFFU, 0x80000000U, 0x7FFFFFFFU, 0}, {0, 1, 2, 3}, 32);
  EXPECT_EQ(rows, (Numbers{0, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}));
  EXPECT_EQ(order, (Numbers{3, 2, 1, 0}));
}

TEST_F(RowSortTest, IgnoresHigherBits) {
  const auto [rows, order] = sort({8 + 2, 1, 16 + 2, 8 + 1}, {0, 1, 2, 3}, 3);
  EXPECT_EQ(rows, (Numbers{1, 8 + 1, 8 + 2, 16 + 2}));
  EXPECT_EQ(order, (Numbers{1, 3, 0, 2}));
}

TEST_F(RowSortTest, SortsManyRows) {
  std::mt19937 random(3);
  Numbers rows(100000), order(rows.size());
  for (auto& row : rows) row = random() % 1000;
  std::iota(order.begin(), order.end(), 0U);
  Numbers expected = order;
  std::stable_sort(expected.begin(), expected.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return rows[a] < rows[b]; });
  const auto [sorted, found] = sort(rows, order, 10);
  EXPECT_EQ(found, expected);
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
}

TEST_F(RowSortTest, FindsRunningMaxima) {
  EXPECT_EQ(maxima({3, 1, 4, 1, 0xFFFFFFFFU, 9}), (Numbers{3, 3, 4, 4, 0xFFFFFFFFU, 0xFFFFFFFFU}));
  EXPECT_EQ(maxima({0}), Numbers{0});
  Numbers many(100000), expected(many.size());
  std::mt19937 random(4);
  std::uint32_t maximum = 0;
  for (std::size_t i = 0; i < many.size(); ++i) {
    many[i] = random() % (1 + static_cast<std::uint32_t>(i));
    expected[i] = maximum = std::max(maximum, many[i]);
  }
  EXPECT_EQ(maxima(many), expected);
}

}  // namespace
}  // namespace capstan::gpu

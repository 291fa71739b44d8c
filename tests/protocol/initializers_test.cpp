// initializers_test.cpp -- registered functions that fill shards.
#include "capstan/initializers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "capstan/error.hpp"
#include "support/expect_error.hpp"

namespace capstan {
namespace {

void fill_with_ones(const Partition&, std::span<float> out) { std::fill(out.begin(), out.end(), 1.0F); }

/// Sets each element to its index along axis 0 of the variable.
void fill_with_rows(const Partition& partition, std::span<std::int64_t> out) {
  std::iota(out.begin(), out.end(), static_cast<std::int64_t>(partition.partition_offset[0]));
}

void untyped_fill(const Partition&, void*) {}

TEST(RegisteredFills, HaveUniqueNumbersStartingAtOne) {
  const std::uint32_t ones = from_partitions<float, fill_with_ones>().any().fill;
  const std::uint32_t rows = from_partitions<std::int64_t, fill_with_rows>().any().fill;
  EXPECT_GE(ones, 1U);
  EXPECT_GE(rows, 1U);
  EXPECT_NE(ones, rows);
  const InitialValue<float> same = from_partitions<float, fill_with_ones>();
  EXPECT_EQ(same.any().fill, ones);
  EXPECT_EQ(InitialValue<float>().any().fill, 0U) << "no function";
}

TEST(RegisteredFills, FillTheGivenShard) {
  const Partition partition{{10}, {3}, {4}};
  std::vector<std::int64_t> numbers(4, -1);
  detail::registered_fill(from_partitions<std::int64_t, fill_with_rows>().any().fill)(partition,
                                                                                      numbers.data());
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{4, 5, 6, -1}));
  std::vector<float> ones(4, 0);
  detail::registered_fill(from_partitions<float, fill_with_ones>().any().fill)(partition, ones.data());
  EXPECT_EQ(ones, (std::vector<float>{1, 1, 1, 0}));
}

TEST(RegisteredFills, AreNumberedInRegistrationOrder) {
  const std::uint32_t number = detail::register_fill(&untyped_fill);
  EXPECT_EQ(detail::register_fill(&untyped_fill), number + 1);
  EXPECT_EQ(detail::registered_fill(number), &untyped_fill);
}

TEST(RegisteredFills, RejectUnknownNumbers) {
  const std::uint32_t last = detail::register_fill(&untyped_fill);
  (void)error_of(Code::internal, [] { (void)detail::registered_fill(0); });
  EXPECT_NE(error_of(Code::internal, [&] { (void)detail::registered_fill(last + 1); })
                .find(std::to_string(last + 1)),
            std::string::npos);
}

}  // namespace
}  // namespace capstan

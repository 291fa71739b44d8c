// sum_of_pushes_test.cpp -- sums of pushes: rows, order of terms, divisor, types.
#include "ps/update/sum_of_pushes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace capstan::ps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class SumOfPushesTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kRows = 4;  // rows in the shard

  /// Returns a push of rows of `width` elements. The push is dense from `first_row` on if `rows` is empty.
  template <class T>
  static HeldPush held(const std::vector<std::uint32_t>& rows, const std::vector<T>& values,
                       std::uint64_t width = 1, std::uint64_t first_row = 0) {
    HeldPush push;
    push.header.kind = rows.empty() ? protocol::PushKind::dense : protocol::PushKind::sparse;
    push.header.rows = static_cast<std::uint32_t>(values.size() / width);
    push.header.first_row = first_row;
    push.rows = rows;
    push.values.resize(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(push.values.data(), values.data(), push.values.size());
    return push;
  }

  template <class T>
  static HeldPush sum(const std::vector<HeldPush>& pushes, int divisor = 1, std::uint64_t width = 1) {
    std::vector<const HeldPush*> pointers;
    for (const HeldPush& push : pushes) pointers.push_back(&push);
    return sum_of(pointers, dtype_of<T>, width, kRows, divisor);
  }

  template <class T>
  static std::vector<T> values_of(const HeldPush& push) {
    std::vector<T> values(push.values.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), push.values.data(), push.values.size());
    return values;
  }

  /// Returns the first element of the sum of pushes of one row.
  template <class T>
  static T sum_of_rows(const std::vector<T>& terms, int divisor = 1) {
    std::vector<HeldPush> pushes;
    for (const T term : terms) pushes.push_back(held<T>({1}, {term}));
    return values_of<T>(sum<T>(pushes, divisor)).at(0);
  }
};

TEST_F(SumOfPushesTest, AddsSparseRowsInAscendingOrder) {
  const HeldPush out =
      sum<float>({held<float>({3, 0}, {1, 2, 3, 4}, 2), held<float>({1, 3}, {5, 6, 10, 20}, 2)}, 1, 2);
  EXPECT_EQ(out.header.kind, protocol::PushKind::sparse);
  EXPECT_EQ(out.header.rows, 3U);
  EXPECT_THAT(out.rows, ElementsAre(0, 1, 3));
  EXPECT_THAT(values_of<float>(out), ElementsAre(3, 4, 5, 6, 11, 22));
}

TEST_F(SumOfPushesTest, AddsRepeatedRowsOfAPush) {
  const HeldPush out = sum<double>({held<double>({2, 1, 2}, {1, 10, 100})});
  EXPECT_THAT(out.rows, ElementsAre(1, 2));
  EXPECT_THAT(values_of<double>(out), ElementsAre(10, 101));
}

TEST_F(SumOfPushesTest, IsDenseIfOnePushIsDense) {
  const HeldPush out =
      sum<float>({held<float>({2}, {1, 2}, 2), held<float>({}, {10, 20, 30, 40}, 2, 1)}, 1, 2);
  EXPECT_EQ(out.header.kind, protocol::PushKind::dense);
  EXPECT_EQ(out.header.first_row, 0U);
  EXPECT_EQ(out.header.rows, kRows);
  EXPECT_THAT(out.rows, IsEmpty());
  EXPECT_THAT(values_of<float>(out), ElementsAre(0, 0, 10, 20, 31, 42, 0, 0));
}

TEST_F(SumOfPushesTest, AddsSparsePushesThatCoverTheShard) {
  const HeldPush out = sum<float>({held<float>({3, 1}, {1, 2}), held<float>({0, 2, 3}, {4, 8, 16})});
  EXPECT_EQ(out.header.rows, kRows);
  EXPECT_THAT(values_of<float>(out), ElementsAre(4, 2, 8, 17));
}

TEST_F(SumOfPushesTest, IsEmptyIfNoPushHasRows) {
  HeldPush empty = held<float>({}, {});
  empty.header.kind = protocol::PushKind::sparse;
  const HeldPush out = sum<float>({empty, empty});
  EXPECT_EQ(out.header.kind, protocol::PushKind::sparse);
  EXPECT_EQ(out.header.rows, 0U);
  EXPECT_THAT(out.rows, IsEmpty());
  EXPECT_THAT(out.values, IsEmpty());
}

TEST_F(SumOfPushesTest, AddsInTheOrderGiven) {
  EXPECT_EQ(sum_of_rows<float>({1e8F, -1e8F, 1}), 1);
  EXPECT_EQ(sum_of_rows<float>({1, 1e8F, -1e8F}), 0);
}

TEST_F(SumOfPushesTest, HasTheShardAndRankOfTheFirstPush) {
  std::vector<HeldPush> pushes{held<float>({2}, {1}), held<float>({2}, {2})};
  for (std::uint32_t i = 0; i < 2; ++i) {
    protocol::PushHeader& header = pushes[i].header;
    header.variable = 7;
    header.shard = 8;
    header.rank = 4 + i;
    header.first_row = 3;  // unused in a sparse push
    header.first_part = i == 0 ? 1 : 0;
    header.last_part = 0;
  }
  std::swap(pushes[0], pushes[1]);
  const HeldPush out = sum<float>(pushes);
  EXPECT_EQ(out.header.variable, 7U);
  EXPECT_EQ(out.header.shard, 8U);
  EXPECT_EQ(out.header.rank, 5U);
  EXPECT_EQ(out.header.op, protocol::RowOp::gradient);
  EXPECT_EQ(out.header.first_row, 0U);
  EXPECT_EQ(out.header.first_part, 1);
  EXPECT_EQ(out.header.last_part, 1);
}

TEST_F(SumOfPushesTest, DividesTheSum) {
  EXPECT_EQ(sum_of_rows<float>({1, 2}, 2), 1.5F);
  EXPECT_EQ(sum_of_rows<double>({1, 2}, 4), 0.75);
  // Workers that pushed nothing count as well.
  const HeldPush out = sum<float>({held<float>({}, {3, 6, 9, 12})}, 3);
  EXPECT_THAT(values_of<float>(out), ElementsAre(1, 2, 3, 4));
}

TEST_F(SumOfPushesTest, DividesIntegersTowardZero) {
  EXPECT_EQ(sum_of_rows<std::int32_t>({3, 4}, 2), 3);
  EXPECT_EQ(sum_of_rows<std::int32_t>({-3, -4}, 2), -3);
  EXPECT_EQ(sum_of_rows<std::int64_t>({-3, -4}, 2), -3);
}

TEST_F(SumOfPushesTest, AcceptsADivisorThatTheTypeCannotHold) {
  const HeldPush push = held<std::uint8_t>({1}, {200});
  const HeldPush* const pushes[] = {&push};
  const HeldPush out = sum_of(pushes, DType::boolean, 1, kRows, 256);
  EXPECT_THAT(values_of<std::uint8_t>(out), ElementsAre(0));
}

TEST_F(SumOfPushesTest, LetsIntegersWrapAround) {
  using Int = std::numeric_limits<std::int32_t>;
  using Long = std::numeric_limits<std::int64_t>;
  EXPECT_EQ(sum_of_rows<std::int32_t>({Int::max(), 1}), Int::min());
  EXPECT_EQ(sum_of_rows<std::int32_t>({Int::min(), -1}), Int::max());
  EXPECT_EQ(sum_of_rows<std::int64_t>({Long::max(), 1}), Long::min());
}

TEST_F(SumOfPushesTest, RoundsSixteenBitNumbersOnce) {
  // If rounded after each term, the sum would equal the first term.
  EXPECT_EQ(sum_of_rows<float16>({float16(2048), float16(1), float16(1)}), float16(2050));
  EXPECT_EQ(sum_of_rows<bfloat16>({bfloat16(256), bfloat16(1), bfloat16(1)}), bfloat16(258));
  EXPECT_EQ(sum_of_rows<float16>({float16(65504), float16(65504)}, 2), float16(65504))
      << "the largest number: the sum is divided before it is rounded";
}

}  // namespace
}  // namespace capstan::ps

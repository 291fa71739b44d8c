// row_ops_test.cpp -- assignment and scatter operations on rows, for every type.
#include "ps/update/row_ops.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace capstan::ps {
namespace {

using protocol::RowOp;

/// Returns `values` after `op` with operands `x` on the rows `rows`, each of `width` elements.
template <class T>
std::vector<T> apply_row_op(std::vector<T> values, RowOp op, const std::vector<T>& x,
                            const std::vector<std::uint32_t>& rows, std::uint64_t width = 1) {
  Update<T> update;
  update.values = values.data();
  update.width = width;
  update.rows = rows.data();
  update.count = rows.size();
  update.gradient = x.data();
  apply(op, update);
  return values;
}

/// Returns w `op` x.
template <class T>
T result_of_op(RowOp op, T w, T x) {
  return apply_row_op<T>({w}, op, {x}, {0}).at(0);
}

template <class T>
class PsRowOps : public testing::Test {
 protected:
  static T number(int value) { return T(static_cast<Arithmetic<T>>(value)); }
  static std::vector<T> numbers(const std::vector<int>& values) {
    std::vector<T> all;
    for (const int value : values) all.push_back(number(value));
    return all;
  }
  static void expect_result(RowOp op, int w, int x, int expected) {
    EXPECT_EQ(result_of_op(op, number(w), number(x)), number(expected))
        << "operation " << static_cast<int>(op);
  }
};

using RowOpTypes = testing::Types<float, double, float16, bfloat16, std::int64_t, std::int32_t, std::uint8_t>;
TYPED_TEST_SUITE(PsRowOps, RowOpTypes);

TYPED_TEST(PsRowOps, CombineAnElementWithItsOperand) {
  this->expect_result(RowOp::set, 12, 4, 4);
  this->expect_result(RowOp::add, 12, 4, 16);
  this->expect_result(RowOp::sub, 12, 4, 8);
  this->expect_result(RowOp::mul, 12, 4, 48);
  this->expect_result(RowOp::div, 12, 4, 3);
  this->expect_result(RowOp::min, 12, 4, 4);
  this->expect_result(RowOp::min, 4, 12, 4);
  this->expect_result(RowOp::max, 12, 4, 12);
  this->expect_result(RowOp::max, 4, 12, 12);
}

TYPED_TEST(PsRowOps, LeaveGradientsToTheOptimizer) { this->expect_result(RowOp::gradient, 12, 4, 12); }

TYPED_TEST(PsRowOps, ChangeTheNamedRowsInOrder) {
  const auto before = this->numbers({1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(apply_row_op(before, RowOp::add, this->numbers({10, 20, 30, 40}), {3, 1}, 2),
            this->numbers({1, 2, 33, 44, 5, 6, 17, 28}));
  EXPECT_EQ(apply_row_op(before, RowOp::set, this->numbers({10, 20, 30, 40}), {3, 1}, 2),
            this->numbers({1, 2, 30, 40, 5, 6, 10, 20}));
  EXPECT_EQ(apply_row_op(before, RowOp::mul, {}, {}, 2), before) << "no rows";
}

TYPED_TEST(PsRowOps, ChangeARowOncePerOccurrence) {
  const auto before = this->numbers({9, 9});
  const auto x = this->numbers({2, 3, 4});
  EXPECT_EQ(apply_row_op(before, RowOp::set, x, {1, 1, 1}), this->numbers({9, 4}));
  EXPECT_EQ(apply_row_op(before, RowOp::add, x, {1, 0, 1}), this->numbers({12, 15}));
  const TypeParam quotient = apply_row_op(before, RowOp::div, x, {1, 1, 0}).at(1);
  EXPECT_EQ(quotient, std::is_integral_v<TypeParam> ? this->number(1) : TypeParam(1.5F));
}

TYPED_TEST(PsRowOps, ChangeConsecutiveRows) {
  for (const RowOp op : {RowOp::set, RowOp::add}) {
    auto values = this->numbers({1, 2, 3, 4, 5, 6, 7, 8});
    const auto x = this->numbers({10, 20, 30, 40});
    Update<TypeParam> update;
    update.values = values.data();
    update.width = 2;
    update.first_row = 1;
    update.count = 2;
    update.gradient = x.data();
    apply(op, update);
    EXPECT_EQ(values, op == RowOp::set ? this->numbers({1, 2, 10, 20, 30, 40, 7, 8})
                                       : this->numbers({1, 2, 13, 24, 35, 46, 7, 8}));
  }
}

TEST(PsRowOpsTest, ComparesAndDividesSignedIntegers) {
  EXPECT_EQ(result_of_op<std::int32_t>(RowOp::min, -3, 2), -3);
  EXPECT_EQ(result_of_op<std::int32_t>(RowOp::max, -3, 2), 2);
  EXPECT_EQ(result_of_op<std::int64_t>(RowOp::min, -3, 2), -3);
  EXPECT_EQ(result_of_op<std::int64_t>(RowOp::max, -3, 2), 2);
  EXPECT_EQ(result_of_op<std::int32_t>(RowOp::div, -7, 2), -3) << "toward zero";
  EXPECT_EQ(result_of_op<std::int64_t>(RowOp::div, 7, -2), -3);
  EXPECT_EQ(result_of_op<std::int64_t>(RowOp::div, 7, -1), -7);
}

TEST(PsRowOpsTest, DividesUnsignedIntegers) {
  EXPECT_EQ(result_of_op<std::uint8_t>(RowOp::div, 200, 255), 0);
  EXPECT_EQ(result_of_op<std::uint8_t>(RowOp::div, 255, 255), 1);
  EXPECT_EQ(result_of_op<std::uint8_t>(RowOp::div, 200, 3), 66);
}

template <class T>
void expect_integers_wrap() {
  constexpr T kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  EXPECT_EQ(result_of_op<T>(RowOp::add, kMax, 1), kMin);
  EXPECT_EQ(result_of_op<T>(RowOp::sub, kMin, 1), kMax);
  EXPECT_EQ(result_of_op<T>(RowOp::mul, kMax, 2), T{-2});
  // The quotient overflows; the division instruction would trap.
  EXPECT_EQ(result_of_op<T>(RowOp::div, kMin, -1), kMin);
}

TEST(PsRowOpsTest, LetsIntegersWrapAround) {
  expect_integers_wrap<std::int32_t>();
  expect_integers_wrap<std::int64_t>();
}

TEST(PsRowOpsTest, SetsTheExactBits) {
  const float not_a_number = std::bit_cast<float>(0x7F800001U);  // arithmetic would set the quiet bit
  EXPECT_EQ(std::bit_cast<std::uint32_t>(result_of_op<float>(RowOp::set, 1, not_a_number)), 0x7F800001U);
  EXPECT_TRUE(std::signbit(result_of_op<double>(RowOp::set, 1, -0.0)));
  EXPECT_EQ(result_of_op(RowOp::set, float16(1), float16::from_bits(0x7C01)).bits(), 0x7C01);
  EXPECT_EQ(result_of_op(RowOp::set, bfloat16(1), bfloat16::from_bits(0x7F81)).bits(), 0x7F81);
}

TEST(PsRowOpsTest, RoundsSixteenBitResults) {
  EXPECT_EQ(result_of_op(RowOp::add, float16(2048), float16(3)), float16(2052));
  EXPECT_EQ(result_of_op(RowOp::div, float16(1), float16(3)), float16(1.0F / 3));
  EXPECT_EQ(result_of_op(RowOp::mul, bfloat16(3), bfloat16(1.0F / 3)),
            bfloat16(3 * static_cast<float>(bfloat16(1.0F / 3))));
}

TEST(PsRowOpsTest, DividesFloatsByZero) {
  EXPECT_EQ(result_of_op<float>(RowOp::div, 1, 0), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(result_of_op<double>(RowOp::div, 0, 0)));
}

TEST(PsRowOpsTest, ChangesManyScatteredRows) {
  // More rows than the prefetch distance.
  constexpr std::uint32_t kRows = 100;
  std::vector<std::uint32_t> rows;
  std::vector<float> x, expected(kRows);
  for (std::uint32_t i = 0; i < kRows; ++i) {
    rows.push_back(i * 37 % kRows);
    x.push_back(static_cast<float>(i));
    expected[rows.back()] = static_cast<float>(i);
  }
  EXPECT_EQ(apply_row_op(std::vector<float>(kRows), RowOp::add, x, rows), expected);
}

}  // namespace
}  // namespace capstan::ps

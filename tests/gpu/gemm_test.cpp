// gemm_test.cpp -- matrix products compared with a plain loop, including sizes not divisible by a tile.
// Tests: src/gpu/gemm_body.hpp
#include "gpu/gemm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/gpu/gpu_to_test.hpp"

namespace capstan::gpu {
namespace {

struct Sizes {
  std::uint32_t rows, columns, inner;
};

std::vector<float> random_values(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(size);
  std::ranges::generate(values, [&] { return normal(random); });
  return values;
}

class GemmTest : public OnGpu {
 protected:
  /// Three NaN that are not part of the matrix follow each row of an operand.
  void check(Sizes sizes, Transposed a_transposed, Transposed b_transposed, GemmTerm term,
             std::uint32_t parts, bool adds) {
    SCOPED_TRACE(std::to_string(sizes.rows) + " x " + std::to_string(sizes.columns) + " by " +
                 std::to_string(sizes.inner) + ", " + std::to_string(parts) + " parts");
    const bool at = a_transposed == Transposed::yes, bt = b_transposed == Transposed::yes;
    const std::uint32_t a_rows = at ? sizes.inner : sizes.rows, a_columns = at ? sizes.rows : sizes.inner;
    const std::uint32_t b_rows = bt ? sizes.columns : sizes.inner,
                        b_columns = bt ? sizes.inner : sizes.columns;
    const std::uint32_t a_stride = a_columns + 3, b_stride = b_columns + 3, out_stride = sizes.columns + 2;
    const auto a = with_gaps(a_rows, a_columns, a_stride, 1);
    const auto b = with_gaps(b_rows, b_columns, b_stride, 2);
    const std::vector<float> before(std::size_t{parts} * sizes.rows * out_stride, 0.25F);
    const auto device_a = to_gpu(a), device_b = to_gpu(b), out = to_gpu(before);
    multiply(
        *stream_,
        {sizes.rows, sizes.columns, sizes.inner, device_a.data(), a_stride, a_transposed, device_b.data(),
         b_stride, b_transposed, out.data(), out_stride, parts, std::uint64_t{sizes.rows} * out_stride, adds},
        term);
    const auto got = to_host(out);
    const std::size_t part = std::size_t{sizes.rows} * out_stride;
    for (std::uint32_t i = 0; i < sizes.rows; ++i) {
      for (std::uint32_t j = 0; j < out_stride; ++j) {
        double sum = 0;
        for (std::uint32_t p = 0; p < parts; ++p) sum += double{got[p * part + i * out_stride + j]};
        if (j >= sizes.columns) {
          ASSERT_EQ(sum, 0.25 * parts) << "outside of the matrix";
          continue;
        }
        double expected = adds ? 0.25 * parts : 0, size = 1;
        for (std::uint32_t k = 0; k < sizes.inner; ++k) {
          const double x = a[at ? k * a_stride + i : i * a_stride + k];
          const double y = b[bt ? j * b_stride + k : k * b_stride + j];
          const double one = term == GemmTerm::product ? x * y : (x - y) * (x - y);
          expected += one;
          size += std::abs(one);
        }
        ASSERT_NEAR(sum, expected, 1e-6 * size) << i << ", " << j;
      }
    }
  }

  static std::vector<float> with_gaps(std::uint32_t rows, std::uint32_t columns, std::uint32_t stride,
                                      unsigned seed) {
    const auto values = random_values(std::size_t{rows} * columns, seed);
    std::vector<float> wide(std::size_t{rows} * stride + 1, std::nanf(""));
    for (std::uint32_t row = 0; row < rows; ++row) {
      std::copy_n(values.begin() + row * columns, columns, wide.begin() + row * stride);
    }
    return wide;
  }
};

TEST_F(GemmTest, AgreesWithAPlainLoop) {
  constexpr auto kNo = Transposed::no, kYes = Transposed::yes;
  const std::vector<Sizes> sizes{{1, 1, 1},    {1, 65, 3},    {64, 64, 16}, {63, 130, 17},
                                 {65, 1, 100}, {128, 64, 33}, {7, 9, 200},  {2, 3, 0}};
  for (const Sizes& one : sizes) {
    for (const auto a : {kNo, kYes}) {
      for (const auto b : {kNo, kYes}) {
        check(one, a, b, GemmTerm::product, 1, false);
        check(one, a, b, GemmTerm::product, 3, true);
      }
    }
    check(one, kNo, kYes, GemmTerm::squared_difference, 1, false);
    check(one, kYes, kNo, GemmTerm::squared_difference, 2, false);
  }
}

TEST_F(GemmTest, PartsBeyondTheInnerRangeAreZero) {
  check({5, 6, 20}, Transposed::no, Transposed::no, GemmTerm::product, 7, false);
}

TEST(GemmParts, SplitResultsOfFewTiles) {
  EXPECT_EQ(gemm_parts(1024, 1024, 256), 1U);
  EXPECT_EQ(gemm_parts(1024, 256, 1024), 4U);
  EXPECT_EQ(gemm_parts(1, 1, 1 << 20), 264U);
  EXPECT_EQ(gemm_parts(1, 1, 127), 1U);
  EXPECT_EQ(gemm_parts(0, 1, 1), 1U);
}

}  // namespace
}  // namespace capstan::gpu

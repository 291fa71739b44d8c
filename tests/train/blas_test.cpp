// blas_test.cpp -- products of submatrices, compared with a triple loop.
#include "train/blas.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace capstan::train {
namespace {

constexpr std::int64_t kRows = 3, kColumns = 5, kInner = 4;

/// A matrix of small integers, whose products are exact, in rows of `stride` floats; the padding is 1000.
std::vector<float> integer_matrix(std::int64_t rows, std::int64_t columns, std::int64_t stride, int seed) {
  std::vector<float> out(static_cast<std::size_t>(rows * stride), 1000);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      out[static_cast<std::size_t>(row * stride + column)] =
          static_cast<float>((seed + 7 * row + 3 * column) % 11 - 5);
    }
  }
  return out;
}

TEST(Blas, MultipliesTransposedAndPlainMatrices) {
  use_one_blas_thread();
  for (const Transposed a_is : {Transposed::no, Transposed::yes}) {
    for (const Transposed b_is : {Transposed::no, Transposed::yes}) {
      for (const std::int64_t padding : {0, 2}) {  // floats between rows
        const bool a_transposed = a_is == Transposed::yes;
        const bool b_transposed = b_is == Transposed::yes;
        const std::int64_t a_stride = (a_transposed ? kRows : kInner) + padding;
        const std::int64_t b_stride = (b_transposed ? kInner : kColumns) + padding;
        const std::int64_t c_stride = kColumns + padding;
        const auto a =
            integer_matrix(a_transposed ? kInner : kRows, a_transposed ? kRows : kInner, a_stride, 1);
        const auto b =
            integer_matrix(b_transposed ? kColumns : kInner, b_transposed ? kInner : kColumns, b_stride, 2);
        auto c = integer_matrix(kRows, kColumns, c_stride, 4);
        auto expected = c;
        for (std::int64_t row = 0; row < kRows; ++row) {
          for (std::int64_t column = 0; column < kColumns; ++column) {
            float sum = 0;
            for (std::int64_t i = 0; i < kInner; ++i) {
              sum +=
                  a[static_cast<std::size_t>(a_transposed ? i * a_stride + row : row * a_stride + i)] *
                  b[static_cast<std::size_t>(b_transposed ? column * b_stride + i : i * b_stride + column)];
            }
            float& to = expected[static_cast<std::size_t>(row * c_stride + column)];
            to = 2 * sum + 0.5F * to;
          }
        }
        multiply(a_is, b_is, kRows, kColumns, kInner, 2, a.data(), a_stride, b.data(), b_stride, 0.5F,
                 c.data(), c_stride);
        EXPECT_EQ(c, expected) << a_transposed << b_transposed << padding;
      }
    }
  }
}

TEST(Blas, UsesOneThread) {
  use_one_blas_thread();
  EXPECT_EQ(openblas_get_num_threads(), 1);
}

}  // namespace
}  // namespace capstan::train

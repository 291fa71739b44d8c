// orthogonal_test.cpp -- tests that rows or columns of orthogonal_matrix are orthonormal, times the gain.
#include "ps/shard/orthogonal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace capstan::ps {
namespace {

/// Checks the products of all pairs of vectors of the shorter side.
void expect_orthonormal(const std::vector<double>& matrix, std::uint64_t rows, std::uint64_t columns,
                        double gain) {
  ASSERT_EQ(matrix.size(), rows * columns);
  const std::uint64_t vectors = std::min(rows, columns);
  const std::uint64_t length = std::max(rows, columns);
  const auto at = [&](std::uint64_t vector, std::uint64_t i) {
    return rows < columns ? matrix[vector * columns + i] : matrix[i * columns + vector];
  };
  for (std::uint64_t a = 0; a < vectors; ++a) {
    for (std::uint64_t b = 0; b <= a; ++b) {
      double product = 0;
      for (std::uint64_t i = 0; i < length; ++i) product += at(a, i) * at(b, i);
      EXPECT_NEAR(product, a == b ? gain * gain : 0, 1e-12 * gain * gain) << "vectors " << a << " and " << b;
    }
  }
}

TEST(OrthogonalMatrix, HasOrthonormalColumnsIfTall) {
  expect_orthonormal(orthogonal_matrix(20, 7, 1, 3), 20, 7, 1);
}

TEST(OrthogonalMatrix, HasOrthonormalRowsIfWide) {
  expect_orthonormal(orthogonal_matrix(7, 20, 1, 3), 7, 20, 1);
}

TEST(OrthogonalMatrix, IsScaledByItsGain) { expect_orthonormal(orthogonal_matrix(9, 9, 2.5, 3), 9, 9, 2.5); }

TEST(OrthogonalMatrix, DependsOnItsSeed) {
  EXPECT_EQ(orthogonal_matrix(5, 5, 1, 3), orthogonal_matrix(5, 5, 1, 3));
  EXPECT_NE(orthogonal_matrix(5, 5, 1, 3), orthogonal_matrix(5, 5, 1, 4));
}

TEST(OrthogonalMatrix, SingleElementIsPlusOrMinusItsGain) {
  EXPECT_DOUBLE_EQ(std::abs(orthogonal_matrix(1, 1, 3, 1).at(0)), 3);
}

}  // namespace
}  // namespace capstan::ps

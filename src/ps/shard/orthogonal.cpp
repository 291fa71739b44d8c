// orthogonal.cpp -- Gram-Schmidt with two passes per vector, which suffices (Giraud, Langou, Rozloznik 2005).
#include "ps/shard/orthogonal.hpp"

#include <algorithm>
#include <cmath>

#include "ps/shard/philox.hpp"

namespace capstan::ps {

std::vector<double> orthogonal_matrix(std::uint64_t rows, std::uint64_t columns, double gain,
                                      std::uint64_t seed) {
  const std::uint64_t length = std::max(rows, columns);
  const std::uint64_t vectors = std::min(rows, columns);
  // Vector k is at [k * length, (k + 1) * length). Q is uniformly distributed since the vectors are normal
  // and Gram-Schmidt gives R a positive diagonal.
  std::vector<double> q(length * vectors);
  for (std::uint64_t i = 0; i < q.size(); ++i) q[i] = normal_pair(i / 2, seed)[i % 2];
  for (std::uint64_t k = 0; k < vectors; ++k) {
    double* v = q.data() + k * length;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::uint64_t other = 0; other < k; ++other) {
        const double* u = q.data() + other * length;
        double product = 0;
        for (std::uint64_t i = 0; i < length; ++i) product += u[i] * v[i];
        for (std::uint64_t i = 0; i < length; ++i) v[i] -= product * u[i];
      }
    }
    double square = 0;
    for (std::uint64_t i = 0; i < length; ++i) square += v[i] * v[i];
    const double scale = 1 / std::sqrt(square);
    for (std::uint64_t i = 0; i < length; ++i) v[i] *= scale;
  }
  std::vector<double> matrix(rows * columns);
  for (std::uint64_t r = 0; r < rows; ++r) {
    for (std::uint64_t c = 0; c < columns; ++c) {
      matrix[r * columns + c] = gain * (rows >= columns ? q[c * length + r] : q[r * length + c]);
    }
  }
  return matrix;
}

}  // namespace capstan::ps

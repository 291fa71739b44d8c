// orthogonal.hpp -- random matrix with orthonormal rows or columns.
#pragma once

#include <cstdint>
#include <vector>

namespace capstan::ps {

/// Returns a row-major `rows` x `columns` matrix: `gain` times Q of the QR decomposition of a matrix of
/// normal numbers, transposed if there are fewer rows than columns. Reproducible on machines with the same
/// floating-point rounding.
std::vector<double> orthogonal_matrix(std::uint64_t rows, std::uint64_t columns, double gain,
                                      std::uint64_t seed);

}  // namespace capstan::ps

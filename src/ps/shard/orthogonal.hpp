// orthogonal.hpp -- a random matrix with orthonormal rows or columns.
#pragma once

#include <cstdint>
#include <vector>

namespace capstan::ps {

/// `rows` x `columns`, row-major: `gain` times Q of the QR decomposition of normal numbers, transposed where
/// there are fewer rows than columns. The same on every machine that rounds alike.
std::vector<double> orthogonal_matrix(std::uint64_t rows, std::uint64_t columns, double gain,
                                      std::uint64_t seed);

}  // namespace capstan::ps

// row_loops.hpp -- the bound of lookups and pushes: the same rows moved by a plain loop in one process.
//
// Vectors as wide as the CPU has, the row size a constant for the usual ones, and all lines of a row fetched
// some rows ahead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capstan::perf {

/// Row ids[i] of `table` into row i of `out`; fetches `ahead` rows ahead.
void gather(const float* table, std::span<const std::int64_t> ids, std::uint64_t width, int ahead,
            float* out);

/// SGD: row ids[i] of `table` -= rate * row i of `gradient`.
void scatter_sgd(float* table, std::span<const std::int64_t> ids, std::uint64_t width, int ahead, float rate,
                 const float* gradient);

/// SGD on all of it: table[i] -= rate * gradient[i].
void dense_sgd(std::span<float> table, float rate, const float* gradient);

/// What any optimizer reads and writes, with one addition an element: row rows[i] of each of `arrays` (the
/// values and up to three slots) += row i of `gradient`, or row i where `rows` is null.
void add_rows(std::span<float* const> arrays, const std::uint32_t* rows, std::size_t count,
              std::uint64_t width, int ahead, const float* gradient);

/// The distances worth trying: which is best depends on the row's size and on the machine.
inline constexpr int kDistances[] = {2, 4, 8, 16, 32};

}  // namespace capstan::perf

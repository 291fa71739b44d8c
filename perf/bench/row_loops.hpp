// row_loops.hpp -- bound of lookups and pushes: a plain loop in one process over the same rows.
//
// Uses vectors of the CPU's full width, compile-time constants for the usual row sizes, and prefetches all
// cache lines of a row some rows ahead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capstan::perf {

/// Copies row ids[i] of `table` to row i of `out`; prefetches `ahead` rows ahead.
void gather(const float* table, std::span<const std::int64_t> ids, std::uint64_t width, int ahead,
            float* out);

/// SGD: row ids[i] of `table` -= rate * row i of `gradient`.
void scatter_sgd(float* table, std::span<const std::int64_t> ids, std::uint64_t width, int ahead, float rate,
                 const float* gradient);

/// SGD on the complete table: table[i] -= rate * gradient[i].
void dense_sgd(std::span<float> table, float rate, const float* gradient);

/// Memory traffic of an optimizer, with one addition per element: row rows[i] of each of `arrays` (the values
/// and up to three slots) += row i of `gradient`; row i if `rows` is null.
void add_rows(std::span<float* const> arrays, const std::uint32_t* rows, std::size_t count,
              std::uint64_t width, int ahead, const float* gradient);

/// Prefetch distances to try; the best depends on the row size and the machine.
inline constexpr int kPrefetchDistances[] = {2, 4, 8, 16, 32};

}  // namespace capstan::perf

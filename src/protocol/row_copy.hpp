// row_copy.hpp -- copies rows at memory bandwidth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "protocol/partition.hpp"

namespace capstan::protocol {

// Other threads may change rows during a copy (relaxed reads): aligned elements of 1, 2, 4 or 8 bytes are
// never torn. All functions prefetch, and use the widest vectors of the CPU.

/// Copies row ids[i] of the table at `table` to row i of `out`.
void gather_ids(const std::byte* table, std::uint64_t row_bytes, std::span<const std::int64_t> ids,
                std::byte* out);
/// Copies rows of a table in shards: origins[s] is where row 0 of the complete table would be in shard s.
void gather_ids(const DivPartition& partition, const std::uintptr_t* origins, std::uint64_t row_bytes,
                std::span<const std::int64_t> ids, std::byte* out);
/// Copies row rows[i] to row order[i] of `out`, or to row i if `order` is empty.
void gather_rows(const std::byte* table, std::uint64_t row_bytes, std::span<const std::uint32_t> rows,
                 std::span<const std::uint32_t> order, std::byte* out);
/// Copies consecutive bytes.
void copy_bytes(const std::byte* from, std::uint64_t bytes, std::byte* to);
/// Copies row order[i] at `from` to row i at `to`, or consecutive rows if `order` is empty. Unlike the
/// others, it writes complete cache lines by non-temporal stores. A thread that sees a later release store of
/// this one sees them. REQUIRES: no other thread changes the rows; `to` is aligned to 64 bytes.
void stream_rows(const std::byte* from, std::uint64_t row_bytes, std::span<const std::uint32_t> order,
                 std::uint64_t count, std::byte* to);

}  // namespace capstan::protocol

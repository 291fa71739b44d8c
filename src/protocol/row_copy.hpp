// row_copy.hpp -- moving rows that lie anywhere, at the rate at which memory delivers cache lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "protocol/partition.hpp"

namespace capstan::protocol {

/// Rows may change while they are copied (relaxed reads): an aligned element of 1, 2, 4 or 8 bytes is never
/// torn. All of these fetch rows ahead of the one in work, and use the widest vectors that the CPU has.

/// Row ids[i] of the table at `table` into row i of `out`.
void gather_ids(const std::byte* table, std::uint64_t row_bytes, std::span<const std::int64_t> ids,
                std::byte* out);
/// The same where shard s of the table has its row 0 of the whole table at origins[s].
void gather_ids(const DivPartition& partition, const std::uintptr_t* origins, std::uint64_t row_bytes,
                std::span<const std::int64_t> ids, std::byte* out);
/// Row rows[i] into row order[i] of `out`, or into row i where `order` is empty.
void gather_rows(const std::byte* table, std::uint64_t row_bytes, std::span<const std::uint32_t> rows,
                 std::span<const std::uint32_t> order, std::byte* out);
/// Consecutive bytes.
void copy_bytes(const std::byte* from, std::uint64_t bytes, std::byte* to);

}  // namespace capstan::protocol

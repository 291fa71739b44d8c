// push_rows.hpp -- one push to one shard, and the entries that it is cut into.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "protocol/push_format.hpp"

namespace capstan::client {

/// A gradient that is still on its way to where it will be: waits until its first `bytes` are there. Throws
/// Error.
using Arrival = std::function<void(std::uint64_t bytes)>;

/// One push to one shard: gradient row i is at `gradient + order[i] * row_bytes`, or consecutive where
/// `order` is empty. Row numbers within the shard are `rows`, or `ids` less `first_row`; a push with neither
/// is dense, from `first_row` on.
struct PushRows {
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  std::uint64_t row_bytes = 0;
  std::span<const std::uint32_t> rows;
  std::span<const std::int64_t> ids;
  std::span<const std::uint32_t> order;
  std::uint64_t first_row = 0;
  std::uint64_t count = 0;
  const std::byte* gradient = nullptr;
  protocol::RowOp op = protocol::RowOp::gradient;
  const Arrival* arrival = nullptr;  // of the gradient; null: it is there
  bool on_gpu = false;               // REQUIRES: a dense push, by RMA

  bool sparse() const noexcept { return !rows.empty() || !ids.empty(); }
};

/// Gradient rows [first, first + count) of a push into consecutive memory.
void copy_rows(const PushRows& push, std::uint64_t first, std::uint64_t count, std::byte* to);
/// Their numbers within the shard.
void copy_numbers(const PushRows& push, std::uint64_t first, std::uint64_t count, std::uint32_t* to);
/// Of the entry that brings them, but for what only its sender knows.
protocol::PushHeader header_of(const PushRows& push, std::uint64_t first, std::uint64_t count, int rank);

/// Rows that make one entry of a push by rings of so many bytes, at least one. The same on every path:
/// entries are what a ClosureLedger counts, and a closure's second run may come by another one. Throws
/// Error(resource_exhausted) where a row does not fit the ring.
std::uint64_t rows_an_entry(const PushRows& push, std::uint64_t ring_bytes);

}  // namespace capstan::client

// push_rows.hpp -- one push to one shard, and the entries that it is split into.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "protocol/push_format.hpp"

namespace capstan::client {

/// Blocks until the first `bytes` bytes of a gradient that is still being copied have arrived. Throws Error.
using Arrival = std::function<void(std::uint64_t bytes)>;

/// One push to one shard: gradient row i is at `gradient + order[i] * row_bytes`, or rows are consecutive if
/// `order` is empty. Row numbers within the shard are `rows`, or `ids` minus `first_row`. A push with `keys`
/// is for rows of a dynamic table. A push without `rows`, `ids` and `keys` is dense, starting at `first_row`.
/// With `bfloat16`, the values of `gradient` are float32, and those that are sent are bfloat16, rounded to
/// nearest or with `stochastic_rounding` at random.
struct PushRows {
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  std::uint64_t row_bytes = 0;
  std::span<const std::uint32_t> rows = {};
  std::span<const std::int64_t> ids = {};
  std::span<const std::int64_t> keys = {};
  std::span<const std::uint32_t> order = {};
  std::uint64_t first_row = 0;
  std::uint64_t count = 0;
  const std::byte* gradient = nullptr;
  protocol::RowOp op = protocol::RowOp::gradient;
  const Arrival* arrival = nullptr;  // of the gradient; nullptr if it has arrived completely
  bool on_gpu = false;               // `gradient` is in GPU memory. REQUIRES: a dense push by RMA
  bool bfloat16 = false;
  bool stochastic_rounding = false;

  protocol::PushKind kind() const noexcept {
    if (!keys.empty()) return protocol::PushKind::keyed;
    return rows.empty() && ids.empty() ? protocol::PushKind::dense : protocol::PushKind::sparse;
  }
  bool rounds_stochastically() const noexcept { return bfloat16 && stochastic_rounding; }
  /// Bytes of the values that each row sends.
  std::uint64_t value_bytes() const noexcept {
    if (!protocol::has_values(op)) return 0;
    return bfloat16 ? row_bytes / 2 : row_bytes;
  }
};

/// Returns the seed of the stochastic rounding of a push to a shard, or 0 if the push does not round so.
/// `entry`: the numbered header of one of its entries. A closure that runs again rounds alike.
std::uint64_t rounding_seed(const PushRows& push, const protocol::PushHeader& entry) noexcept;
/// Copies gradient rows [first, first + count) of a push to consecutive memory, in the format that is sent.
/// `seed`: rounding_seed() of the push; ignored unless the push rounds stochastically.
void copy_rows(const PushRows& push, std::uint64_t first, std::uint64_t count, std::byte* to,
               std::uint64_t seed);
/// Copies their row numbers within the shard, or their keys.
void copy_numbers(const PushRows& push, std::uint64_t first, std::uint64_t count, std::uint32_t* to);
/// Writes the part of an entry that follows its header: row numbers or keys unless the push is dense, then
/// rows. `seed`: see copy_rows().
void copy_body(const PushRows& push, std::uint64_t first, std::uint64_t count, std::byte* to,
               std::uint64_t seed);
/// The same with non-temporal stores of the rows (protocol::stream_rows). REQUIRES: the push has values and
/// does not round them; `to` is aligned to 64 bytes.
void stream_body(const PushRows& push, std::uint64_t first, std::uint64_t count, std::byte* to);
/// Returns the row numbers of a push as PushSink::apply takes them. Numbers that must be computed are stored
/// in `buffer`.
std::span<const std::uint32_t> all_numbers(const PushRows& push, std::vector<std::uint32_t>& buffer);
/// Returns the header of the entry with these rows, without its numbers (PushNumbering).
protocol::PushHeader header_of(const PushRows& push, std::uint64_t first, std::uint64_t count, int rank);

/// Returns the number of rows, at least 1, in one entry of a push through rings of `ring_bytes` bytes. It
/// is the same on every path and for every format: a ClosureLedger counts entries, the second run of a
/// closure may use another path, and the journal holds the rows of one entry. Throws
/// Error(resource_exhausted) if a row does not fit the ring.
std::uint64_t rows_an_entry(const PushRows& push, std::uint64_t ring_bytes);

}  // namespace capstan::client

// push_rows.cpp -- divides pushes into entries that fit the caches of both ends.
#include "client/channel/push_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "base/key_hash.hpp"
#include "capstan/error.hpp"
#include "protocol/bfloat16_values.hpp"
#include "protocol/row_copy.hpp"
#include "transport/fabric.hpp"

namespace capstan::client {

namespace {

/// Hashes the parts of a seed.
std::uint64_t mixed(std::initializer_list<std::uint64_t> parts) noexcept {
  constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;  // of SplitMix64; the hash of 0 is 0
  std::uint64_t seed = 0;
  for (const std::uint64_t part : parts) seed = hash_of(static_cast<std::int64_t>(seed + part + kGamma));
  return seed;
}

/// Copies consecutive gradient rows, of `bytes` bytes, from row `first` of the push on.
void copy_values(const PushRows& push, std::uint64_t first, const std::byte* from, std::uint64_t bytes,
                 std::byte* to, std::uint64_t seed) {
  const std::span<const float> floats(reinterpret_cast<const float*>(from), bytes / sizeof(float));
  auto* const narrow = reinterpret_cast<bfloat16*>(to);
  if (!push.bfloat16) {
    std::memcpy(to, from, bytes);
  } else if (push.stochastic_rounding) {
    protocol::to_bfloat16_stochastically(floats, narrow, mixed({seed, first}));
  } else {
    protocol::to_bfloat16(floats, narrow);
  }
}

/// Copies row numbers or keys unless the push is dense. Returns the address after them.
std::byte* copy_padded_numbers(const PushRows& push, std::uint64_t first, std::uint64_t count,
                               std::byte* to) {
  if (push.kind() == protocol::PushKind::dense) return to;
  copy_numbers(push, first, count, reinterpret_cast<std::uint32_t*>(to));
  return to + protocol::number_bytes(push.kind(), count);
}

}  // namespace

std::uint64_t rounding_seed(const PushRows& push, const protocol::PushHeader& entry) noexcept {
  if (!push.rounds_stochastically()) return 0;
  // (closure, replica, call) names a push in a closure, (rank, call) one outside of closures.
  const std::uint64_t origin = entry.closure != 0 ? entry.closure : std::uint64_t{entry.rank} << 32;
  return mixed({origin, std::uint64_t{entry.replica} << 32 | entry.call,
                std::uint64_t{entry.variable} << 32 | entry.shard});
}

void copy_rows(const PushRows& push, std::uint64_t first, std::uint64_t count, std::byte* to,
               std::uint64_t seed) {
  if (push.value_bytes() == 0) return;
  if (push.order.empty()) {
    return copy_values(push, first, push.gradient + first * push.row_bytes, count * push.row_bytes, to, seed);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    copy_values(push, first + i, push.gradient + push.order[first + i] * push.row_bytes, push.row_bytes,
                to + i * push.value_bytes(), seed);
  }
}

void copy_numbers(const PushRows& push, std::uint64_t first, std::uint64_t count, std::uint32_t* to) {
  if (!push.keys.empty()) {
    std::memcpy(to, push.keys.data() + first, count * sizeof push.keys[0]);
    return;
  }
  if (push.ids.empty()) {
    std::memcpy(to, push.rows.data() + first, count * sizeof *to);
    return;
  }
  const std::int64_t* ids = push.ids.data() + first;
  for (std::uint64_t i = 0; i < count; ++i) {
    to[i] = static_cast<std::uint32_t>(static_cast<std::uint64_t>(ids[i]) - push.first_row);
  }
}

void copy_body(const PushRows& push, std::uint64_t first, std::uint64_t count, std::byte* to,
               std::uint64_t seed) {
  copy_rows(push, first, count, copy_padded_numbers(push, first, count, to), seed);
}

void stream_body(const PushRows& push, std::uint64_t first, std::uint64_t count, std::byte* to) {
  to = copy_padded_numbers(push, first, count, to);
  const bool ordered = !push.order.empty();
  const std::byte* const from = ordered ? push.gradient : push.gradient + first * push.row_bytes;
  const auto order = ordered ? push.order.subspan(first, count) : push.order;
  protocol::stream_rows(from, push.row_bytes, order, count, to);
}

std::span<const std::uint32_t> all_numbers(const PushRows& push, std::vector<std::uint32_t>& buffer) {
  if (!push.keys.empty())
    return {reinterpret_cast<const std::uint32_t*>(push.keys.data()), 2 * push.keys.size()};
  if (push.ids.empty()) return push.rows;
  buffer.resize(push.count);
  copy_numbers(push, 0, push.count, buffer.data());
  return buffer;
}

protocol::PushHeader header_of(const PushRows& push, std::uint64_t first, std::uint64_t count, int rank) {
  protocol::PushHeader header;
  header.rank = static_cast<std::uint32_t>(rank);
  header.kind = push.kind();
  header.variable = push.variable;
  header.shard = push.shard;
  header.rows = static_cast<std::uint32_t>(count);
  header.bytes = protocol::entry_bytes(header.kind, count, push.value_bytes());
  header.first_row = header.kind == protocol::PushKind::dense ? push.first_row + first : 0;
  header.first_part = first == 0 ? 1 : 0;
  header.last_part = first + count == push.count ? 1 : 0;
  header.op = push.op;
  header.bfloat16_values = push.bfloat16 ? 1 : 0;
  return header;
}

std::uint64_t rows_an_entry(const PushRows& push, std::uint64_t ring_bytes) {
  // At most a quarter of the ring, so that both ends work concurrently.
  const std::uint64_t max_bytes = std::min<std::uint64_t>(ring_bytes / 4, transport::kPieceBytes);
  const std::uint64_t value_bytes = protocol::has_values(push.op) ? push.row_bytes : 0;
  const std::uint64_t row_cost = value_bytes + protocol::number_words(push.kind(), 1) * sizeof(std::uint32_t);
  const std::uint64_t rows = std::max<std::uint64_t>(1, (max_bytes - 3 * protocol::kCacheLine) / row_cost);
  if (protocol::entry_bytes(push.kind(), rows, value_bytes) <= protocol::largest_entry(ring_bytes))
    return rows;
  throw Error(
      Code::resource_exhausted,
      fmt::format("push: a row of {} bytes does not fit a push ring of {} bytes; set --push-ring-bytes to "
                  "at least four rows",
                  push.row_bytes, ring_bytes));
}

}  // namespace capstan::client

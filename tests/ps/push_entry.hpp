// push_entry.hpp -- builds push entries as a client writes them.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "protocol/push_format.hpp"

namespace capstan::ps {

/// Returns the bytes of one entry. The entry is dense from `first_row` on if `rows` is empty.
template <class T>
std::vector<std::byte> push_entry(std::uint32_t variable, std::uint32_t shard,
                                  std::vector<std::uint32_t> rows, std::uint64_t first_row,
                                  std::uint64_t width, const std::vector<T>& gradient, bool first_part = true,
                                  bool last_part = true) {
  protocol::PushHeader header;
  header.kind = rows.empty() ? protocol::PushKind::dense : protocol::PushKind::sparse;
  header.variable = variable;
  header.shard = shard;
  header.rows = static_cast<std::uint32_t>(gradient.size() / width);
  header.first_row = first_row;
  header.first_part = first_part ? 1 : 0;
  header.last_part = last_part ? 1 : 0;
  const std::size_t numbers = (rows.size() * 4 + 63) / 64 * 64;
  header.bytes = 64 + numbers + (gradient.size() * sizeof(T) + 63) / 64 * 64;
  std::vector<std::byte> out(header.bytes);
  std::memcpy(out.data(), &header, sizeof header);
  if (!rows.empty()) std::memcpy(out.data() + 64, rows.data(), rows.size() * 4);
  if (!gradient.empty()) std::memcpy(out.data() + 64 + numbers, gradient.data(), gradient.size() * sizeof(T));
  return out;
}

/// Returns the entry with a row operation in place of the optimizer's update.
inline std::vector<std::byte> with_op(std::vector<std::byte> entry, protocol::RowOp op) {
  protocol::PushHeader header;
  std::memcpy(&header, entry.data(), sizeof header);
  header.op = op;
  std::memcpy(entry.data(), &header, sizeof header);
  return entry;
}

/// Returns the entry with values that are marked as bfloat16.
inline std::vector<std::byte> with_bfloat16(std::vector<std::byte> entry) {
  protocol::PushHeader header;
  std::memcpy(&header, entry.data(), sizeof header);
  header.bfloat16_values = 1;
  std::memcpy(entry.data(), &header, sizeof header);
  return entry;
}

/// Returns an entry for keys of a dynamic table; without values for RowOp::insert and erase.
template <class T>
std::vector<std::byte> keyed_entry(std::uint32_t variable, const std::vector<std::int64_t>& keys,
                                   const std::vector<T>& values,
                                   protocol::RowOp op = protocol::RowOp::gradient) {
  protocol::PushHeader header;
  header.kind = protocol::PushKind::keyed;
  header.variable = variable;
  header.rows = static_cast<std::uint32_t>(keys.size());
  header.op = op;
  const std::uint64_t numbers = protocol::number_bytes(header.kind, keys.size());
  header.bytes = sizeof header + numbers + protocol::round_up(values.size() * sizeof(T));
  std::vector<std::byte> out(header.bytes);
  std::memcpy(out.data(), &header, sizeof header);
  if (!keys.empty()) std::memcpy(out.data() + sizeof header, keys.data(), keys.size() * sizeof keys[0]);
  if (!values.empty())
    std::memcpy(out.data() + sizeof header + numbers, values.data(), values.size() * sizeof(T));
  return out;
}

/// Returns an entry that sets the learning rate of a shard.
inline std::vector<std::byte> rate_entry(std::uint32_t variable, std::uint32_t shard, double rate) {
  protocol::PushHeader header;
  header.kind = protocol::PushKind::learning_rate;
  header.variable = variable;
  header.shard = shard;
  header.first_row = std::bit_cast<std::uint64_t>(rate);
  header.bytes = sizeof header;
  std::vector<std::byte> out(sizeof header);
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

/// Applies an entry to a sink as the ring reader does.
inline void apply_entry(protocol::PushSink& sink, const std::vector<std::byte>& entry) {
  protocol::PushHeader header;
  std::memcpy(&header, entry.data(), sizeof header);
  protocol::apply_entry(header, entry.data() + sizeof header, sink);
}

}  // namespace capstan::ps

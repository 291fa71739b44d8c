// route.hpp -- how one client accesses a variable's shards, and the ids of a call sorted by shard.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "client/channel/ps_connection.hpp"
#include "protocol/descriptor.hpp"
#include "protocol/partition.hpp"
#include "protocol/ps_messages.hpp"
#include "protocol/table_layout.hpp"

namespace capstan::client {

/// How to access one shard. Valid until the memory of the shard's ps is lost.
struct ShardRoute {
  protocol::ShardLocation location;
  std::uint32_t number = 0;
  PsConnection* connection = nullptr;
  std::uint64_t relocations = 0;      // of the connection when the route was created
  const std::byte* values = nullptr;  // row 0 of the shard; nullptr if it is not mapped
  const std::uint64_t* version = nullptr;

  /// Returns true if the shard is in host memory, which channels can access.
  bool in_host_memory() const noexcept { return location.region != protocol::kNoRegion; }
  bool valid() const noexcept { return connection->relocations() == relocations; }
  /// Returns the form in which the ps sends rows of this shard. Mapped shards are read exactly; if the ps
  /// serves such a read because of concurrent writers, the result must be the same. Rows that the ps stores
  /// as int8 are read exactly, too.
  protocol::SentValues sent_values(const protocol::VariableDescriptor& variable) const noexcept {
    const bool may_round = variable.communication.bfloat16 && !variable.storage.int8;
    const bool narrows = may_round && values == nullptr && in_host_memory();
    return narrows ? protocol::SentValues::bfloat16 : protocol::SentValues::stored;
  }
  /// Returns the same for lookups, which may be of int8 if that has fewer bytes. Rows that the ps stores as
  /// int8 are exact as such.
  protocol::SentValues sent_by_lookups(const protocol::VariableDescriptor& variable) const noexcept {
    using protocol::SentValues;
    const SentValues otherwise = sent_values(variable);
    const bool shorter = protocol::sent_bytes(SentValues::int8, variable.row_bytes()) <
                         protocol::sent_bytes(otherwise, variable.row_bytes());
    const bool sends_int8 = variable.communication.int8_lookups || variable.storage.int8;
    const bool narrows = sends_int8 && values == nullptr && in_host_memory();
    return narrows && shorter ? SentValues::int8 : otherwise;
  }
};

struct Route {
  explicit Route(const protocol::VariableDescriptor& variable)
      : partition(variable.rows(), variable.shards.size()) {
    if (variable.table)
      table = protocol::TableLayout::of(variable.shards.at(0).rows, variable.width(), variable.dtype,
                                        variable.storage, variable.optimizer.kind);
  }

  protocol::DivPartition partition;
  std::vector<ShardRoute> shards;
  bool mapped = true;  // whether all shards are mapped
  /// If all shards are mapped: for each shard, the address at which row 0 of the variable would be. Row r of
  /// the variable is r * row_bytes after it.
  std::vector<std::uintptr_t> origins;
  std::optional<protocol::TableLayout> table;  // layout of each shard, for a dynamic table

  bool valid() const noexcept {
    return std::all_of(shards.begin(), shards.end(), [](const ShardRoute& shard) { return shard.valid(); });
  }
};

/// Sorts the ids of a call by shard; stable within each shard. Reuses its memory.
class ByShard {
 public:
  void sort(const Route& route, std::span<const std::int64_t> ids);

  std::size_t count(std::size_t shard) const noexcept { return begins_[shard + 1] - begins_[shard]; }
  /// Row numbers within the shard.
  std::span<const std::uint32_t> rows(std::size_t shard) const noexcept {
    return {rows_.data() + begins_[shard], count(shard)};
  }
  /// Positions of the ids in the call, one shard after the other.
  std::span<const std::uint32_t> order() const noexcept { return order_; }
  /// Positions of one shard's ids, a part of order().
  std::span<const std::uint32_t> order(std::size_t shard) const noexcept {
    return {order_.data() + begins_[shard], count(shard)};
  }

 private:
  std::vector<std::size_t> begins_;
  std::vector<std::size_t> next_;
  std::vector<std::uint32_t> shard_of_;
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint32_t> order_;
};

}  // namespace capstan::client

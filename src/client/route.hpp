// route.hpp -- a variable's shards as one client reaches them, and the ids of a call sorted by shard.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client/channel/ps_link.hpp"
#include "protocol/descriptor.hpp"
#include "protocol/partition.hpp"

namespace capstan::client {

struct ShardRoute {
  protocol::ShardLocation place;
  std::uint32_t number = 0;
  PsLink* link = nullptr;
  // Where the ps's memory is mapped:
  const std::byte* values = nullptr;  // row 0 of the shard
  const std::uint64_t* version = nullptr;

  bool reads_by_rma() const noexcept {
    return link->path() == Path::rma && place.region != protocol::kNoRegion;
  }
};

struct Route {
  explicit Route(const protocol::VariableDescriptor& variable)
      : partition(variable.rows(), variable.shards.size()) {}

  protocol::DivPartition partition;
  std::vector<ShardRoute> shards;
  bool mapped = true;       // all of them
  std::uint64_t moves = 0;  // of all links, when it was made
  /// If so, by shard: where the variable's row 0 would be; row r of it is r * row_bytes further on.
  std::vector<std::uintptr_t> origins;
};

/// The ids of a call, shard by shard, in the order of the call within each. Keeps its memory.
class ByShard {
 public:
  void sort(const Route& route, std::span<const std::int64_t> ids);

  std::size_t count(std::size_t shard) const noexcept { return begins_[shard + 1] - begins_[shard]; }
  /// Row numbers within the shard.
  std::span<const std::uint32_t> rows(std::size_t shard) const noexcept {
    return {rows_.data() + begins_[shard], count(shard)};
  }
  /// Of all shards, one after the other.
  std::span<const std::uint32_t> order() const noexcept { return order_; }
  std::size_t first(std::size_t shard) const noexcept { return begins_[shard]; }
  /// Positions in the call.
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

// keys_by_shard.hpp -- the keys of a call, sorted by the shard of a dynamic table that holds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace capstan::client {

/// Stable within each shard. Reuses its memory.
class KeysByShard {
 public:
  /// With one shard, nothing is copied: `keys` must remain valid then.
  void sort(std::size_t shards, std::span<const std::int64_t> keys);

  std::span<const std::int64_t> keys(std::size_t shard) const noexcept {
    return in_call_order_ ? call_ : std::span(keys_).subspan(begins_[shard], size(shard));
  }
  /// Positions of a shard's keys in the call; empty if they are all keys of the call, in its order.
  std::span<const std::uint32_t> order(std::size_t shard) const noexcept {
    if (in_call_order_) return {};
    return std::span(order_).subspan(begins_[shard], size(shard));
  }

 private:
  std::size_t size(std::size_t shard) const noexcept { return begins_[shard + 1] - begins_[shard]; }

  bool in_call_order_ = true;
  std::span<const std::int64_t> call_;
  std::vector<std::size_t> begins_;
  std::vector<std::size_t> next_;
  std::vector<std::uint32_t> shard_of_;
  std::vector<std::int64_t> keys_;
  std::vector<std::uint32_t> order_;
};

}  // namespace capstan::client

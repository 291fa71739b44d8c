// keys_by_shard.cpp -- a counting sort.
#include "client/keys_by_shard.hpp"

#include "protocol/table_layout.hpp"

namespace capstan::client {

void KeysByShard::sort(std::size_t shards, std::span<const std::int64_t> keys) {
  call_ = keys;
  in_call_order_ = shards == 1;
  if (in_call_order_) return;
  begins_.assign(shards + 1, 0);
  shard_of_.resize(keys.size());
  keys_.resize(keys.size());
  order_.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint32_t shard = protocol::shard_of_hash(protocol::hash_of(keys[i]), shards);
    shard_of_[i] = shard;
    ++begins_[shard + 1];
  }
  for (std::size_t s = 1; s < begins_.size(); ++s) begins_[s] += begins_[s - 1];
  next_.assign(begins_.begin(), begins_.end() - 1);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t at = next_[shard_of_[i]]++;
    keys_[at] = keys[i];
    order_[at] = static_cast<std::uint32_t>(i);
  }
}

}  // namespace capstan::client

// route.cpp -- sorts ids by shard with a counting sort.
#include "client/route.hpp"

namespace capstan::client {

void ByShard::sort(const Route& route, std::span<const std::int64_t> ids) {
  begins_.assign(route.shards.size() + 1, 0);
  shard_of_.resize(ids.size());
  rows_.resize(ids.size());
  order_.resize(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto shard =
        static_cast<std::uint32_t>(route.partition.shard_of(static_cast<std::uint64_t>(ids[i])));
    shard_of_[i] = shard;
    ++begins_[shard + 1];
  }
  for (std::size_t s = 1; s < begins_.size(); ++s) begins_[s] += begins_[s - 1];
  next_.assign(begins_.begin(), begins_.end() - 1);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::size_t at = next_[shard_of_[i]]++;
    rows_[at] = static_cast<std::uint32_t>(static_cast<std::uint64_t>(ids[i]) -
                                           route.shards[shard_of_[i]].location.first_row);
    order_[at] = static_cast<std::uint32_t>(i);
  }
}

}  // namespace capstan::client

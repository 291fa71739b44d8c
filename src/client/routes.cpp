// routes.cpp -- determines the current location of each shard, and maps it if its ps is on this host.
#include "client/routes.hpp"

namespace capstan::client {

std::unique_ptr<Route>& Routes::cached(const protocol::VariableDescriptor& variable) {
  if (variable.part != 0) return of_parts_[{variable.id, variable.part}];
  if (of_variables_.size() <= variable.id) of_variables_.resize(variable.id + std::size_t{1});
  return of_variables_[variable.id];
}

std::unique_ptr<Route> Routes::make(const protocol::VariableDescriptor& variable) {
  auto route = std::make_unique<Route>(variable);
  for (const protocol::ShardLocation& original : variable.shards) {
    ShardRoute shard;
    shard.number = variable.part != 0 ? variable.part - 1 : static_cast<std::uint32_t>(route->shards.size());
    shard.connection = &connections_.at(original.ps);
    shard.relocations = shard.connection->relocations();
    protocol::ShardLocation& location = shard.location;
    location = shard.connection->current_location(variable.id, shard.number, original);
    location.first_row = original.first_row;  // 0 for a single part
    ReadChannel& reads = shard.connection->reads();
    // The ps converts int8 rows: a copy during an update could combine new extremes with old bytes.
    if (shard.in_host_memory() && !variable.storage.int8)
      shard.values = reads.mapped(location.region, location.offset);
    if (shard.values != nullptr) {
      route->origins.push_back(reinterpret_cast<std::uintptr_t>(shard.values) -
                               location.first_row * variable.row_bytes());
      shard.version = reinterpret_cast<const std::uint64_t*>(
          reads.mapped(location.version_region, location.version_offset));
    } else {
      route->mapped = false;
    }
    route->shards.push_back(shard);
  }
  return route;
}

}  // namespace capstan::client

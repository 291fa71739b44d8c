// current_replica.hpp -- the replica that the calling thread is, while it runs a replica's function.
#pragma once

#include "capstan/detail/replica_context.hpp"

namespace capstan::strategy {

/// Null outside of `run`.
ReplicaContext* current_replica() noexcept;

class CurrentReplica {
 public:
  explicit CurrentReplica(ReplicaContext& self) noexcept;
  ~CurrentReplica();
  CurrentReplica(const CurrentReplica&) = delete;
  CurrentReplica& operator=(const CurrentReplica&) = delete;
};

}  // namespace capstan::strategy

// current_replica.hpp -- the replica whose function the calling thread runs.
#pragma once

#include "capstan/detail/replica_context.hpp"

namespace capstan::strategy {

/// Returns null outside of `run`.
ReplicaContext* current_replica() noexcept;

/// Sets the calling thread's replica while it lives.
class CurrentReplica {
 public:
  explicit CurrentReplica(ReplicaContext& self) noexcept;
  ~CurrentReplica();
  CurrentReplica(const CurrentReplica&) = delete;
  CurrentReplica& operator=(const CurrentReplica&) = delete;
};

}  // namespace capstan::strategy

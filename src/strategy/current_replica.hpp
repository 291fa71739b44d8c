// current_replica.hpp -- the replica whose function the calling thread runs.
#pragma once

#include "capstan/detail/replica_context.hpp"

namespace capstan::strategy {

/// Returns the replica that runs on the calling thread; null outside of ReplicaGroup::run.
ReplicaContext* current_replica() noexcept;

/// While an object exists, current_replica() on its thread returns `self`.
class CurrentReplica {
 public:
  explicit CurrentReplica(ReplicaContext& self) noexcept;
  ~CurrentReplica();
  CurrentReplica(const CurrentReplica&) = delete;
  CurrentReplica& operator=(const CurrentReplica&) = delete;
};

}  // namespace capstan::strategy

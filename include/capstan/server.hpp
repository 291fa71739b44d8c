// server.hpp -- what every rank but the coordinator runs.
#pragma once

#include "capstan/cluster.hpp"
#include "capstan/export.hpp"

namespace capstan {

/// A ps serves its shards, a worker runs closures, until the coordinator says that the job is over.
class CAPSTAN_API Server {
 public:
  explicit Server(const Cluster& cluster) : cluster_(cluster) {}

  /// Returns the exit code for main: 0 at the end of the job, 4 when the coordinator has died, 1 when this
  /// worker has been silent for too long and counts as dead. Errors are logged.
  int join();

 private:
  Cluster cluster_;
};

}  // namespace capstan

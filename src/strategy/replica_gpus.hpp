// replica_gpus.hpp -- a GPU and a stream for each replica of a rank, and the group that those GPUs are.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "capstan/device.hpp"
#include "cluster/runtime.hpp"
#include "gpu/communicator.hpp"

namespace capstan::strategy {

class ReplicaGpus {
 public:
  /// Uses no GPU yet. Throws Error, naming the rank: failed_precondition where it does not see as many;
  /// unimplemented for several in a build without NCCL.
  ReplicaGpus(const cluster::Runtime& runtime, int replicas);

  /// Before a run: creates streams and group, and replaces those that have failed. Throws Error.
  void get_ready();
  int device(int replica) const { return devices_[static_cast<std::size_t>(replica)]; }

  // REQUIRES: get_ready().

  const DeviceStream& stream(int replica) const { return streams_[static_cast<std::size_t>(replica)]; }
  gpu::Communicator& group() noexcept { return *group_; }

 private:
  std::vector<int> devices_;  // by replica
  std::vector<DeviceStream> streams_;
  std::unique_ptr<gpu::Communicator> group_;  // uses the streams
};

}  // namespace capstan::strategy

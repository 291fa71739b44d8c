// replica_gpus.hpp -- a GPU and a stream for each replica of a rank, and their communicator.
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
  /// Selects the GPUs without using them. Throws Error with the rank: failed_precondition if the rank has
  /// fewer GPUs than replicas; unimplemented for several replicas in a build without NCCL.
  ReplicaGpus(const cluster::Runtime& runtime, int replicas);

  /// Creates the streams and the communicator if they do not exist or have failed. Called before every run.
  /// Throws the Error of the CUDA or NCCL call that failed.
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

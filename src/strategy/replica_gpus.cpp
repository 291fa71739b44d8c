// replica_gpus.cpp -- the GPUs of a rank's replicas, and collectives on arrays in their memory.
#include "strategy/replica_gpus.hpp"

#include <fmt/format.h>

#include "capstan/detail/replica_context.hpp"
#include "capstan/error.hpp"
#include "cluster/roles/gpu_assignment.hpp"
#include "strategy/replica_group.hpp"

namespace capstan {
namespace strategy {

ReplicaGpus::ReplicaGpus(const cluster::Runtime& runtime, int replicas) {
  try {
    devices_ = cluster::assigned_gpus(runtime, replicas);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("--replica-device=gpu with --replicas={}: each replica has a GPU of "
                            "its own; {}",
                            replicas, error.what()));
  }
  if (replicas == 1) return;
  if (const std::string reason = gpu::why_no_group(); !reason.empty()) {
    throw Error(Code::unimplemented, fmt::format("--replica-device=gpu with --replicas={}: {}: {}", replicas,
                                                 runtime.self().name(), reason));
  }
}

void ReplicaGpus::get_ready() {
  if (group_ && !group_->has_failed()) return;
  group_.reset();
  streams_.clear();
  std::vector<const gpu::Stream*> streams;
  for (const int gpu : devices_) streams_.emplace_back(gpu);
  for (const DeviceStream& stream : streams_) streams.push_back(&stream.implementation());
  group_ = std::make_unique<gpu::Communicator>(std::move(streams));
}

}  // namespace strategy

namespace detail {
namespace {

void require_same_sizes(const char* call, std::span<const OnGpu> arrays) {
  for (std::size_t replica = 1; replica < arrays.size(); ++replica) {
    if (arrays[replica].size == arrays[0].size) continue;
    throw differ(call, "the size", replica, std::to_string(arrays[replica].size),
                 std::to_string(arrays[0].size));
  }
}

std::vector<gpu::Part> parts_of(std::span<const OnGpu> arrays) {
  std::vector<gpu::Part> parts;
  for (const OnGpu& array : arrays) parts.push_back({array.in, array.out});
  return parts;
}

}  // namespace

int device_of(strategy::ReplicaGroup& group, int replica) { return group.gpus().device(replica); }

const DeviceStream& stream_of(strategy::ReplicaGroup& group, int replica) {
  return group.gpus().stream(replica);
}

void wait_for_gpu(strategy::ReplicaGroup& group, int replica) {
  group.gpus().group().wait(replica, group.timeout());
}

void all_reduce_on_gpus(strategy::ReplicaGroup& group, bool mean, DType dtype,
                        std::span<const OnGpu> arrays) {
  require_same_sizes("all_reduce", arrays);
  group.gpus().group().all_reduce(mean ? gpu::Combine::mean : gpu::Combine::sum, dtype, arrays[0].size,
                                  parts_of(arrays));
}

void all_gather_on_gpus(strategy::ReplicaGroup& group, DType dtype, std::span<const OnGpu> arrays) {
  require_same_sizes("all_gather", arrays);
  const std::size_t all = arrays[0].size * arrays.size();
  for (std::size_t replica = 0; replica < arrays.size(); ++replica) {
    if (arrays[replica].capacity == all) continue;
    throw Error(
        Code::invalid_argument,
        fmt::format("all_gather: the output of replica {} holds {} elements; expected {}, {} per replica",
                    replica, arrays[replica].capacity, all, arrays[0].size));
  }
  group.gpus().group().all_gather(dtype, arrays[0].size, parts_of(arrays));
}

void broadcast_on_gpus(strategy::ReplicaGroup& group, int root, DType dtype, std::span<const OnGpu> arrays) {
  require_same_sizes("broadcast", arrays);
  if (root < 0 || root >= group.size()) {
    throw Error(Code::invalid_argument,
                fmt::format("broadcast: the root is replica {}, expected 0 to {}", root, group.size() - 1));
  }
  group.gpus().group().broadcast(root, dtype, arrays[0].size, parts_of(arrays));
}

}  // namespace detail
}  // namespace capstan

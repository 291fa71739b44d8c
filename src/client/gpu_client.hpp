// gpu_client.hpp -- reads and pushes between shards in GPU memory and callers' GPU memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "client/channel/gpu_rows.hpp"
#include "client/combine.hpp"
#include "client/ps_connections.hpp"
#include "client/push_numbering.hpp"
#include "client/routes.hpp"
#include "cluster/runtime.hpp"
#include "protocol/descriptor.hpp"

namespace capstan::client {

/// Part of a Client. A call returns false and does nothing if this path does not exist for a shard of the
/// variable; the caller then uses another path. Used by the thread that owns the data fabric.
class GpuClient {
 public:
  /// All arguments must outlive this object.
  GpuClient(cluster::Runtime& runtime, PsConnections& connections, Routes& routes, PushNumbering& numbering)
      : runtime_(runtime), connections_(connections), routes_(routes), numbering_(numbering) {}

  /// Reads rows `ids` into `out`, by kernels in stream order. The caller may reuse `ids` on return.
  /// REQUIRES: check_ids() accepts `ids`.
  bool lookup(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids, std::byte* out,
              const gpu::Stream& stream, gpu::Staging& staging);
  /// Reads rows [first_row, first_row + rows) into `out`, in stream order.
  bool pull(const protocol::VariableDescriptor& variable, std::uint64_t first_row, std::uint64_t rows,
            std::byte* out, const gpu::Stream& stream);
  /// Pushes a gradient that the stream computes: row i belongs to row ids[i], or to row i without ids.
  /// Waits for the gradient; the caller may reuse it on return. Throws Error(resource_exhausted) before
  /// anything was pushed.
  bool push(const protocol::VariableDescriptor& variable, std::optional<std::span<const std::int64_t>> ids,
            const std::byte* gradient, const gpu::Stream& stream, gpu::Staging& staging);

 private:
  using Ids = std::optional<std::span<const std::int64_t>>;

  GpuRows& kernels(int gpu) { return kernels_.try_emplace(gpu, gpu).first->second; }
  const std::byte* values(const protocol::VariableDescriptor& variable, const ShardRoute& shard, int gpu);
  std::vector<PushRows> split(const protocol::VariableDescriptor& variable, const Ids& ids,
                              const std::byte* gradient);
  bool reserve(const protocol::VariableDescriptor& variable, std::span<const PushRows> pushes, const Ids& ids,
               int gpu);

  cluster::Runtime& runtime_;
  PsConnections& connections_;
  Routes& routes_;
  PushNumbering& numbering_;
  ByShard by_shard_;
  Combiner combiner_;
  std::map<int, GpuRows> kernels_;  // by GPU
};

}  // namespace capstan::client

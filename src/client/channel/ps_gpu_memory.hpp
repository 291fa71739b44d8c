// ps_gpu_memory.hpp -- memory of a ps's GPU that kernels of this process read and write.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "client/channel/staging_buffer.hpp"
#include "gpu/gpu.hpp"

namespace capstan::client {

/// Mappings of the shards in a ps's GPU, and of this client's staging buffers there. Used by one thread at a
/// time.
class PsGpuMemory {
 public:
  /// A shard as seen by kernels of one GPU of this process.
  struct ShardView {
    int gpu = 0;
    std::uint32_t variable = 0;
    std::uint32_t shard = 0;
    auto operator<=>(const ShardView&) const = default;
  };

  PsGpuMemory() = default;
  ~PsGpuMemory() { release(); }
  PsGpuMemory(const PsGpuMemory&) = delete;
  PsGpuMemory& operator=(const PsGpuMemory&) = delete;

  /// Returns the address of row 0 of the shard, or nullptr if kernels of that GPU cannot access it. Maps it
  /// on first use, with the key (gpu::MappedMemory) that `ask` returns. `last_read` passes when the kernels
  /// that read through this GPU's mappings have finished.
  template <class Ask>
  const std::byte* values(const ShardView& view, const std::shared_ptr<gpu::Event>& last_read,
                          const Ask& ask) {
    auto known = shards_.find(view);
    if (known == shards_.end()) {
      known = shards_.emplace(view, gpu::MappedMemory(view.gpu, ask())).first;
      last_reads_[view.gpu] = last_read;
    }
    return known->second.data();
  }

  /// Returns the staging buffer for kernels of `gpu`; nullptr before add_staging_buffer() and after
  /// release().
  StagingBuffer* staging_buffer(int gpu) noexcept;
  /// REQUIRES: staging_buffer(gpu) is nullptr.
  StagingBuffer& add_staging_buffer(int gpu, const protocol::StagingBufferKey& key);

  /// Unmaps everything after the kernels that read it have finished. Until then the memory of a dead ps
  /// remains allocated, and its successor may lack GPU memory. References to staging buffers stay valid,
  /// but is_usable() is false.
  void release() noexcept;

 private:
  std::map<ShardView, gpu::MappedMemory> shards_;
  std::map<int, std::shared_ptr<gpu::Event>> last_reads_;  // by GPU of this process
  std::map<int, StagingBuffer> staging_buffers_;           // by GPU of this process
};

}  // namespace capstan::client

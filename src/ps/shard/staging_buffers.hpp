// staging_buffers.hpp -- GPU memory of a ps into which kernels of workers on its host write gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/gpu.hpp"
#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"

namespace capstan::ps {

/// A buffer belongs to one pusher, which writes gradients to slots in it and refers to the slots in its
/// entries. The pusher may keep it mapped, so buffers are reused and never freed individually. Not
/// thread-safe.
class StagingBuffers {
 public:
  /// Assigns a further buffer to `rank`: a released one of that size, or a new one. Throws
  /// Error(resource_exhausted).
  protocol::StagingBufferKey open(int rank, int gpu, std::uint64_t bytes);
  /// Releases the buffers of `rank`. REQUIRES: its process has ended, so that it no longer writes.
  void release(int rank) noexcept;

  /// Returns the address of a slot of `bytes`, or null if it is not within a buffer of `rank`.
  std::byte* at(const protocol::BufferSlot& slot, std::uint32_t rank, std::uint64_t bytes) const noexcept;

 private:
  struct Buffer {
    int rank;  // -1: released
    gpu::Memory memory;
  };
  std::vector<Buffer> buffers_;  // by number
};

}  // namespace capstan::ps

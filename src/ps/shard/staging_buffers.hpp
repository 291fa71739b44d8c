// staging_buffers.hpp -- memory of a ps's GPU into which workers of its host put gradients by their own
// kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/gpu.hpp"
#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"

namespace capstan::ps {

/// A room belongs to one pusher, who writes there what it then names in its entries. It stays mapped for as
/// long as the pusher likes, so that none is freed before all are. One thread at a time.
class StagingBuffers {
 public:
  /// Another one for that rank at each call: one that was released, or a new one. Throws
  /// Error(resource_exhausted).
  protocol::StagingBufferKey open(int rank, int gpu, std::uint64_t bytes);
  /// Nothing writes into that rank's rooms any more: its process has ended.
  void release(int rank) noexcept;

  /// `bytes` from that place on; null where they are not in a room of that rank.
  std::byte* at(const protocol::BufferSlot& place, std::uint32_t rank, std::uint64_t bytes) const noexcept;

 private:
  struct Owned {
    int rank;  // -1: nobody's
    gpu::Memory memory;
  };
  std::vector<Owned> rooms_;  // by number
};

}  // namespace capstan::ps

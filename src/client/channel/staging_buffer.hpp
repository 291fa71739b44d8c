// staging_buffer.hpp -- a pusher's buffer in the GPU of a ps, used cyclically like its ring in host memory.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "gpu/gpu.hpp"
#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"

namespace capstan::client {

/// Used by one thread at a time.
class StagingBuffer {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{16} << 20;
  /// Maximum bytes per copy: a quarter, so that the ps applies one part while the next one is copied.
  static constexpr std::uint64_t kPutBytes = kBytes / 4;

  /// Maps the memory in the reply of the ps, for kernels of `gpu`.
  StagingBuffer(int gpu, const protocol::StagingBufferKey& answer)
      : memory_(answer.key.empty() ? gpu::MappedMemory() : gpu::MappedMemory(gpu, answer.key)),
        number_(answer.number) {}

  /// Returns false if the ps has refused a buffer, if the GPU cannot access it, and after release().
  bool is_usable() const noexcept { return memory_.data() != nullptr; }
  std::byte* at(const protocol::BufferSlot& slot) const noexcept { return memory_.data() + slot.at; }

  /// Unmaps the memory after the death of the ps.
  void release() noexcept {
    memory_ = {};
    released_ = true;
  }
  bool released() const noexcept { return released_; }

  /// Returns a contiguous slot of `bytes` bytes, or nullopt while unapplied entries occupy the buffer.
  /// `applied` is the position in the ring up to which the ps has applied entries. REQUIRES: bytes <= kBytes.
  std::optional<protocol::BufferSlot> take(std::uint64_t bytes, std::uint64_t applied);
  /// Records that all slots taken so far belong to entries that end at `tail` in the ring.
  void used_until(std::uint64_t tail) { uses_.push_back({tail, head_}); }

 private:
  struct Use {
    std::uint64_t tail;  // of the ring
    std::uint64_t head;  // of the buffer
  };
  gpu::MappedMemory memory_;
  std::uint32_t number_;
  bool released_ = false;
  // Positions in bytes since the start; a slot is at (position % kBytes).
  std::uint64_t head_ = 0;
  std::uint64_t free_from_ = 0;  // everything before it has been applied
  std::deque<Use> uses_;
};

}  // namespace capstan::client

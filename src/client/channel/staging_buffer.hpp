// staging_buffer.hpp -- a pusher's memory in the GPU of a ps, used round and round as its ring in the host's
// is.
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
  /// What is put there at once: a quarter, so that the ps works on some while the next is put.
  static constexpr std::uint64_t kPutBytes = kBytes / 4;

  /// Not there where the ps has none to give, or that GPU of this process does not reach it.
  StagingBuffer(int gpu, const protocol::StagingBufferKey& answer)
      : memory_(answer.key.empty() ? gpu::MappedMemory() : gpu::MappedMemory(gpu, answer.key)),
        number_(answer.number) {}

  bool is_there() const noexcept { return memory_.data() != nullptr; }
  std::byte* at(const protocol::BufferSlot& place) const noexcept { return memory_.data() + place.at; }

  /// A place for so many bytes, one after the other. Nothing while what lies there is not applied: the ps has
  /// applied its ring's entries up to `applied`. REQUIRES: at most kBytes.
  std::optional<protocol::BufferSlot> take(std::uint64_t bytes, std::uint64_t applied);
  /// What was taken is of entries that end there in the ring.
  void used_until(std::uint64_t tail) { uses_.push_back({tail, head_}); }

 private:
  struct Use {
    std::uint64_t tail;  // of the ring
    std::uint64_t head;  // of the room
  };
  gpu::MappedMemory memory_;
  std::uint32_t number_;
  // Bytes since the beginning; a place lies at (bytes % kBytes).
  std::uint64_t head_ = 0;
  std::uint64_t free_from_ = 0;  // all before it has been applied
  std::deque<Use> uses_;
};

}  // namespace capstan::client

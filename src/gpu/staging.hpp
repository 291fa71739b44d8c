// staging.hpp -- the way between a GPU and memory that it cannot reach: pieces of pinned memory, one of which
// is copied while another is filled, or used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "gpu/gpu.hpp"

namespace capstan::gpu {

/// Large enough for the full rate of PCIe, small enough that the first and last piece, which nothing
/// overlaps, do not count.
inline constexpr std::size_t kStagingPiece = std::size_t{2} << 20;

/// Of one GPU. Used by one thread at a time. Keeps its memory.
class Staging {
 public:
  explicit Staging(int device, std::size_t piece_bytes = kStagingPiece);

  /// Puts bytes [first, first + bytes) of what is to be copied into `to`.
  using Fill = std::function<void(std::uint64_t first, std::size_t bytes, std::byte* to)>;
  /// Copies `bytes` to `to`, in the stream's order. `fill` is called for one piece after the other, each a
  /// multiple of `unit` bytes, the last of them while this call lasts; the copies may end later. What fill
  /// throws goes on, and some of `to` has been written then.
  void to_gpu(const Stream& stream, std::byte* to, std::uint64_t bytes, std::uint64_t unit, const Fill& fill);

  /// Begins to copy from the GPU, in the stream's order. Returns where the bytes will be, until the next
  /// call. `from` has to stay until they have come.
  const std::byte* from_gpu(const Stream& stream, const std::byte* from, std::uint64_t bytes);
  /// Until the first `bytes` of them have come.
  void await(std::uint64_t bytes);

 private:
  struct Piece {
    PinnedMemory memory;
    Event copied;
  };

  int device_;
  std::size_t piece_bytes_;
  std::deque<Piece> pieces_;  // to the GPU, by turns
  std::size_t turn_ = 0;
  PinnedMemory whole_;          // from the GPU
  std::deque<Event> arrivals_;  // of its pieces, or more
  std::uint64_t coming_ = 0;    // pieces
  std::uint64_t arrived_ = 0;   // of them
};

}  // namespace capstan::gpu

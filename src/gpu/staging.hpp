// staging.hpp -- copies between a GPU and host memory that is not pinned, through pinned staging buffers. One
// buffer is copied while the other is filled or used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "gpu/gpu.hpp"

namespace capstan::gpu {

/// Large enough for the full bandwidth of PCIe; small enough that the first and last piece, which do not
/// overlap with other work, cost little.
inline constexpr std::size_t kStagingPiece = std::size_t{2} << 20;

/// Staging buffers of one GPU, which are reused between calls. Used by one thread at a time.
class Staging {
 public:
  explicit Staging(int device, std::size_t piece_bytes = kStagingPiece);

  /// Writes bytes [first, first + bytes) of the source into `to`.
  using Fill = std::function<void(std::uint64_t first, std::size_t bytes, std::byte* to)>;
  /// Copies `bytes` to `to`, in stream order. Calls `fill` for one piece after the other, each a multiple of
  /// `unit` bytes. All calls of `fill` end before this call returns; the copies may end later. An exception
  /// of `fill` propagates and leaves a part of `to` written.
  void to_gpu(const Stream& stream, std::byte* to, std::uint64_t bytes, std::uint64_t unit, const Fill& fill);

  /// Starts a copy from the GPU, in stream order. Returns the buffer that receives the bytes, valid until the
  /// next call. `from` must remain valid until the copy is done.
  const std::byte* from_gpu(const Stream& stream, const std::byte* from, std::uint64_t bytes);
  /// Blocks until the first `bytes` bytes have arrived.
  void await(std::uint64_t bytes);

 private:
  struct Buffer {
    PinnedMemory memory;
    Event copied;
  };

  int device_;
  std::size_t piece_bytes_;
  std::deque<Buffer> buffers_;  // to the GPU, used in turn
  std::size_t next_buffer_ = 0;
  PinnedMemory received_;       // from the GPU
  std::deque<Event> arrivals_;  // one per piece, or more
  std::uint64_t pending_ = 0;   // pieces of the last from_gpu()
  std::uint64_t arrived_ = 0;   // pieces that were awaited
};

}  // namespace capstan::gpu

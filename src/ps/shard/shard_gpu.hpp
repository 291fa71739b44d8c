// shard_gpu.hpp -- the GPU of a ps: its stream, and pinned memory for transfers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "gpu/gpu.hpp"
#include "gpu/row_ops.hpp"

namespace capstan::ps {

/// Work runs in the order in which the stream gets it, so a read sees all earlier pushes, settled or not. Not
/// thread-safe: its callers hold the store's mutex.
class ShardGpu {
 public:
  /// Largest single transfer: long enough for the full rate of PCIe.
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;
  /// Bytes of so many row numbers, padded so that data behind them is aligned as an allocation is.
  static constexpr std::uint64_t bytes_of_numbers(std::uint64_t rows) {
    return aligned(rows * sizeof(std::uint32_t));
  }

  /// Throws Error.
  ShardGpu(int number, bool deterministic);
  ~ShardGpu();
  ShardGpu(const ShardGpu&) = delete;
  ShardGpu& operator=(const ShardGpu&) = delete;

  int number() const noexcept { return stream_.device(); }
  /// Launches collected work, then returns the stream.
  const gpu::Stream& stream();
  /// True if gradients of repeated rows are summed in a fixed order.
  bool deterministic() const noexcept { return updates_->deterministic(); }
  /// Word in which kernels note a row number that is out of range. Callers check row numbers beforehand.
  std::uint32_t* first_bad() const noexcept { return reinterpret_cast<std::uint32_t*>(first_bad_.data()); }
  /// Scratch memory that the updates of all its shards share.
  const std::shared_ptr<gpu::UpdateRoom>& updates() const noexcept { return updates_; }

  /// Memory for one transfer, at the same offset on both sides.
  struct Staging {
    std::byte* host = nullptr;  // pinned
    std::byte* device = nullptr;
  };
  /// Allocates what `stage` of so many bytes needs. Throws Error(resource_exhausted), and then changes
  /// nothing.
  void reserve(std::uint64_t bytes);
  /// Returns `bytes` on both sides, aligned for every type, for work that the stream gets before the next
  /// call. Double-buffered: one half is filled while the other is in flight.
  Staging stage(std::uint64_t bytes);
  /// Returns the last `bytes` of the latest `stage` unused.
  void take_back(std::uint64_t bytes) noexcept { used_ -= bytes / kAlignment * kAlignment; }
  /// Registers work that is still being collected in staging memory; `launch` is called before the stream
  /// gets any other work.
  void collect(std::function<void()> launch);
  void launch_collected();
  /// Launches collected work and blocks until the stream is idle. Throws Error(internal) if any of it failed.
  void settle();

 private:
  /// Alignment of GPU allocations; enough for the widest loads.
  static constexpr std::uint64_t kAlignment = 256;
  static constexpr std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  gpu::Stream stream_;
  std::function<void()> launch_;  // empty: no work is being collected
  gpu::Memory first_bad_;
  std::shared_ptr<gpu::UpdateRoom> updates_;
  gpu::PinnedMemory host_;
  gpu::Memory device_;
  std::uint64_t half_bytes_ = 0;
  std::array<gpu::Event, 2> sent_;  // last use of each half
  std::size_t half_ = 0;            // in use
  std::uint64_t used_ = 0;          // bytes of that half
};

}  // namespace capstan::ps

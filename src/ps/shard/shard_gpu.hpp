// shard_gpu.hpp -- stream and pinned transfer memory of a ps's GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "gpu/gpu.hpp"
#include "gpu/row_ops.hpp"

namespace capstan::ps {

/// Work runs in stream order, so a read sees all earlier pushes, settled or not. Not thread-safe: calls
/// require the mutex of the store.
class ShardGpu {
 public:
  /// Size of the largest single transfer: enough for the full bandwidth of PCIe.
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;
  /// Returns the bytes of `rows` row numbers, padded so that data after them is aligned like an allocation.
  static constexpr std::uint64_t bytes_of_numbers(std::uint64_t rows) {
    return aligned(rows * sizeof(std::uint32_t));
  }

  /// Opens GPU `number`. Throws Error.
  ShardGpu(int number, bool deterministic);
  ~ShardGpu();
  ShardGpu(const ShardGpu&) = delete;
  ShardGpu& operator=(const ShardGpu&) = delete;

  int number() const noexcept { return stream_.device(); }
  /// Launches collected work, then returns the stream.
  const gpu::Stream& stream();
  /// Returns true if gradients of repeated rows are summed in a fixed order.
  bool deterministic() const noexcept { return updates_->deterministic(); }
  /// Returns the word in GPU memory in which kernels record a row number that is out of range. Callers check
  /// row numbers beforehand.
  std::uint32_t* first_bad() const noexcept { return reinterpret_cast<std::uint32_t*>(first_bad_.data()); }
  /// Returns the scratch memory shared by the updates of all shards.
  const std::shared_ptr<gpu::UpdateScratch>& updates() const noexcept { return updates_; }

  /// Memory for one transfer, at the same offset in both buffers.
  struct Staging {
    std::byte* host = nullptr;  // pinned
    std::byte* device = nullptr;
  };
  /// Allocates the buffers for `stage` of up to `bytes`. Throws Error(resource_exhausted), and then changes
  /// nothing.
  void reserve(std::uint64_t bytes);
  /// Allocates `bytes` in both buffers, aligned for every type, for work submitted before the next call.
  /// Double-buffered: one half is filled while the other is in flight. May block until the other is free.
  Staging stage(std::uint64_t bytes);
  /// Frees the last `bytes` of the latest `stage`, which were not used.
  void return_unused(std::uint64_t bytes) noexcept { used_ -= bytes / kAlignment * kAlignment; }
  /// Registers work that is still being collected in staging memory; `launch` is called before any other work
  /// is submitted.
  void collect(std::function<void()> launch);
  void launch_collected();
  /// Launches collected work and blocks until the stream is idle. Throws Error(internal) if any of it failed.
  void settle();

 private:
  /// Alignment of GPU allocations, sufficient for the widest loads.
  static constexpr std::uint64_t kAlignment = 256;
  static constexpr std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  gpu::Stream stream_;
  std::function<void()> launch_;  // empty: no work is being collected
  gpu::Memory first_bad_;
  std::shared_ptr<gpu::UpdateScratch> updates_;
  gpu::PinnedMemory host_;
  gpu::Memory device_;
  std::uint64_t half_bytes_ = 0;
  std::array<gpu::Event, 2> sent_;  // last use of each half
  std::size_t half_ = 0;            // index of the half that is being filled
  std::uint64_t used_ = 0;          // bytes in use of that half
};

}  // namespace capstan::ps

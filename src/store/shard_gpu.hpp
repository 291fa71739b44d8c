// shard_gpu.hpp -- the GPU of a ps: its stream, and room on the way there and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/gpu.hpp"
#include "device/row_ops.hpp"

namespace capstan::store {

/// What is given to its stream is done in order, so that a read sees the pushes before it, settled or not.
/// One thread at a time, such as the one that has the store's mutex.
class ShardGpu {
 public:
  /// What is copied at once, at most: long enough for the full rate of PCIe.
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;

  /// Throws Error.
  ShardGpu(int number, bool deterministic);
  ~ShardGpu();
  ShardGpu(const ShardGpu&) = delete;
  ShardGpu& operator=(const ShardGpu&) = delete;

  int number() const noexcept { return stream_.device(); }
  const device::Stream& stream() const noexcept { return stream_; }
  /// Sums of rows that are named twice are made in an order that does not change.
  bool deterministic() const noexcept { return updates_->deterministic(); }
  /// For kernels that note rows that are not there; whoever calls them has looked at the rows.
  std::uint32_t* first_bad() const noexcept { return reinterpret_cast<std::uint32_t*>(first_bad_.data()); }

  struct Room {
    std::byte* here = nullptr;   // pinned
    std::byte* there = nullptr;  // in the GPU's memory
  };
  /// What its shards' updates need beside them.
  const std::shared_ptr<device::UpdateRoom>& updates() const noexcept { return updates_; }

  /// For calls of `room` with so many bytes, which so have what they need. Throws Error(resource_exhausted),
  /// and then has what it had.
  void reserve(std::uint64_t bytes);
  /// So many bytes on both sides, aligned for every type, for what the stream is given before the next call
  /// of `settle`, or of `room`, which settles when there is none left.
  Room room(std::uint64_t bytes);
  /// Until all that was given to the stream is done. Throws Error(internal) when any of it failed.
  void settle();

 private:
  device::Stream stream_;
  device::Memory first_bad_;
  std::shared_ptr<device::UpdateRoom> updates_;
  device::PinnedMemory here_;
  device::Memory there_;
  std::uint64_t used_ = 0;
};

}  // namespace capstan::store

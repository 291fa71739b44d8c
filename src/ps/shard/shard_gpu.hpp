// shard_gpu.hpp -- the GPU of a ps: its stream, and room on the way there and back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "gpu/gpu.hpp"
#include "gpu/row_ops.hpp"

namespace capstan::ps {

/// What is given to its stream is done in order, so that a read sees the pushes before it, settled or not.
/// One thread at a time, such as the one that has the store's mutex.
class ShardGpu {
 public:
  /// What is copied at once, at most: long enough for the full rate of PCIe.
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;
  /// Of so many row numbers, so that what follows them is aligned as an allocation is.
  static constexpr std::uint64_t bytes_of_numbers(std::uint64_t rows) {
    return aligned(rows * sizeof(std::uint32_t));
  }

  /// Throws Error.
  ShardGpu(int number, bool deterministic);
  ~ShardGpu();
  ShardGpu(const ShardGpu&) = delete;
  ShardGpu& operator=(const ShardGpu&) = delete;

  int number() const noexcept { return stream_.device(); }
  /// After what is being collected has been given to it.
  const gpu::Stream& stream();
  /// Sums of rows that are named twice are made in an order that does not change.
  bool deterministic() const noexcept { return updates_->deterministic(); }
  /// For kernels that note rows that are not there; whoever calls them has looked at the rows.
  std::uint32_t* first_bad() const noexcept { return reinterpret_cast<std::uint32_t*>(first_bad_.data()); }

  struct Room {
    std::byte* here = nullptr;   // pinned
    std::byte* there = nullptr;  // in the GPU's memory
  };
  /// What its shards' updates need beside them.
  const std::shared_ptr<gpu::UpdateRoom>& updates() const noexcept { return updates_; }

  /// For calls of `room` with so many bytes, which so have what they need. Throws Error(resource_exhausted),
  /// and then has what it had.
  void reserve(std::uint64_t bytes);
  /// So many bytes on both sides, aligned for every type, for what the stream is given before the next call.
  /// There are two halves: while what one holds is on its way, the other is filled.
  Room room(std::uint64_t bytes);
  /// The last so many bytes of the room that was handed out last, which nobody needs.
  void take_back(std::uint64_t bytes) noexcept { used_ -= bytes / kAlignment * kAlignment; }
  /// Somebody collects work in a room, and `give` gives it to the stream: called before anything else is.
  void collect(std::function<void()> give);
  /// That is given now.
  void give_collected();
  /// Until all that was given to the stream is done, with what is being collected. Throws Error(internal)
  /// when any of it failed.
  void settle();

 private:
  /// Of one GPU's allocations; enough for its widest loads.
  static constexpr std::uint64_t kAlignment = 256;
  static constexpr std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  gpu::Stream stream_;
  std::function<void()> give_;  // empty: nothing is being collected
  gpu::Memory first_bad_;
  std::shared_ptr<gpu::UpdateRoom> updates_;
  gpu::PinnedMemory here_;
  gpu::Memory there_;
  std::uint64_t half_bytes_ = 0;
  std::array<gpu::Event, 2> given_;  // what the halves hold
  std::size_t half_ = 0;             // in use
  std::uint64_t used_ = 0;           // of it
};

}  // namespace capstan::ps

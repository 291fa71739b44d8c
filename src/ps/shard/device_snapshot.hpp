// device_snapshot.hpp -- the rows of a shard in a GPU's memory as they were at one moment, while pushes go
// on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/gpu.hpp"
#include "ps/shard/device_shard.hpp"
#include "ps/shard/frozen_rows.hpp"
#include "ps/shard/touched_rows.hpp"

namespace capstan::ps {

/// A copy of them, in the GPU's memory where that leaves room for what pushes need, else in the host's, whose
/// making takes as long as the bytes take over PCIe. Made by the store's thread, under its mutex; read by one
/// other, by a stream of its own and without the mutex.
class DeviceSnapshot final : public FrozenRows {
 public:
  /// Of the rows that have been touched, or of all. Throws Error(resource_exhausted) when neither has room.
  DeviceSnapshot(const std::shared_ptr<DeviceShard>& shard, const std::optional<TouchedRows>& touched);
  ~DeviceSnapshot() override;

  void list_rows() override {}
  std::size_t arrays() const noexcept override { return arrays_.size(); }
  std::uint64_t rows() const noexcept override { return listed_ ? listed_->size() : rows_; }
  std::uint64_t row(std::uint64_t i) const noexcept override { return listed_ ? (*listed_)[i] : i; }
  void copy(std::size_t array, std::uint64_t first, std::uint64_t count, std::byte* out,
            std::mutex& store_mutex) override;

  bool is_on_gpu() const noexcept { return on_gpu_; }

 private:
  struct Array {
    std::uint64_t row_bytes = 0;
    gpu::Memory there = {};  // one of the two
    std::unique_ptr<std::byte[]> here = {};
  };
  void copy_there(const DeviceShard& shard);
  void copy_here(const DeviceShard& shard);

  int gpu_;
  std::uint64_t rows_;                                // of the shard
  std::optional<std::vector<std::uint32_t>> listed_;  // those that there are; or all
  bool on_gpu_ = false;
  std::vector<Array> arrays_;
  gpu::Event made_;
  // Of the thread that reads.
  std::unique_ptr<gpu::Stream> stream_;
  gpu::PinnedMemory piece_;
};

}  // namespace capstan::ps

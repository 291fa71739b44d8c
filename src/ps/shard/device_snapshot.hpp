// device_snapshot.hpp -- snapshot of the rows of a shard on a GPU, while pushes continue.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/gpu.hpp"
#include "ps/shard/device_table.hpp"
#include "ps/shard/frozen_rows.hpp"
#include "ps/shard/touched_rows.hpp"

namespace capstan::ps {

/// A full copy: in GPU memory if that leaves enough for pushes, else in host memory, which takes as long as a
/// transfer of all bytes over PCIe. Constructed under the store's mutex; read without it by one other thread,
/// on a stream of its own.
class DeviceSnapshot final : public FrozenRows {
 public:
  /// Copies the touched rows, or all. Throws Error(resource_exhausted) if neither memory is large enough.
  DeviceSnapshot(const DeviceTable& table, const std::optional<TouchedRows>& touched);
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
    gpu::Memory device = {};  // allocated if the snapshot is in GPU memory, else `host` is
    std::unique_ptr<std::byte[]> host = {};
  };
  /// Returns false, with nothing allocated, if the GPU has too little memory for all arrays.
  [[nodiscard]] bool allocate_on_device();
  void copy_to_device(const DeviceTable& table);
  void copy_to_host(const DeviceTable& table);

  int gpu_;
  std::uint64_t rows_;                                // number of rows in the shard
  std::optional<std::vector<std::uint32_t>> listed_;  // rows of the snapshot; none: all
  bool on_gpu_ = false;
  std::vector<Array> arrays_;
  gpu::Event made_;
  // Used by the reading thread only:
  std::unique_ptr<gpu::Stream> stream_;
  gpu::PinnedMemory piece_;
};

}  // namespace capstan::ps

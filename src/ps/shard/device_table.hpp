// device_table.hpp -- values and optimizer slots of a shard in GPU memory, and operations on them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gpu/row_ops.hpp"
#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"
#include "ps/shard/shard_gpu.hpp"
#include "ps/update/collected_push.hpp"

namespace capstan::ps {

/// Array 0 holds the values; the slots follow in the order of protocol::slots_of. Not thread-safe: calls to
/// this object and to its ShardGpu must be serialized.
class DeviceTable {
 public:
  struct Array {
    std::byte* data = nullptr;
    std::uint64_t row_bytes = 0;
  };

  /// Allocates uninitialized arrays, and all memory that `apply` will ever need. Throws Error:
  /// resource_exhausted, invalid_argument (more rows than the GPU kernels support).
  DeviceTable(std::shared_ptr<ShardGpu> gpu, const protocol::CreateShard& description);

  ShardGpu& gpu() const noexcept { return *gpu_; }
  std::uint64_t rows() const noexcept { return description_.rows; }
  /// Index of the first row in the variable.
  std::uint64_t first_row() const noexcept { return description_.first_row; }
  std::size_t arrays() const noexcept { return memory_.size(); }
  Array array(std::size_t number) const;
  /// Bytes of all arrays.
  std::uint64_t bytes() const noexcept;

  /// Applies an entry of a push asynchronously; `rows` and `values` may be reused on return. One kernel
  /// launch may apply several entries of a push: at the last of them, or before other work is submitted to
  /// the GPU. REQUIRES: the entry fits the shard.
  void apply(const protocol::PushHeader& header, std::span<const std::uint32_t> rows, const std::byte* values,
             const UpdateStep& step);
  /// Like `apply`, for a gradient in a staging buffer on the GPU. May overwrite the gradient, which must stay
  /// valid until ShardGpu::settle.
  void apply_staged(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                    std::byte* gradient, const UpdateStep& step);

  /// Allocates the memory for `apply_from_device` of up to `rows` rows. Throws Error(resource_exhausted).
  void reserve_from_device(std::uint64_t rows);
  /// Like `apply`, for a gradient in GPU memory that is valid once `ready` has completed. Blocks until the
  /// gradient has been copied. REQUIRES: memory for that many rows was reserved.
  void apply_from_device(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                         const std::byte* gradient, const gpu::Event& ready, const UpdateStep& step);
  /// Returns the gpu::MappedMemory::key of the values.
  std::vector<std::byte> key() const;

  /// Copies rows of an array to host memory in the order given, after all work submitted before. Blocks until
  /// they are copied. Fastest into pinned memory. REQUIRES: row numbers within the shard.
  void read_rows(std::size_t array, std::span<const std::uint32_t> rows, std::byte* out) const;
  void read(std::size_t array, std::uint64_t first_byte, std::span<std::byte> out) const;
  /// Copies rows of an array to `device_out` in GPU memory, asynchronously.
  void gather(std::size_t array, std::span<const std::uint32_t> rows, std::byte* device_out) const;

  /// Writes bytes [first, first + bytes) of an array to `to`.
  using Fill = std::function<void(std::uint64_t first, std::uint64_t bytes, std::byte* to)>;
  /// Fills an array in pieces of complete rows.
  void fill(std::size_t array, const Fill& fill);
  void fill_with_zeros();
  /// Overwrites bytes [first, first + bytes) of an array with the bytes that `read` writes to pinned memory
  /// piece by piece.
  void write(std::size_t array, std::uint64_t first, std::uint64_t bytes, const Fill& read);
  /// Copies all rows of an array to pinned memory piece by piece, calls `change` to modify them, and copies
  /// them back.
  void change(
      std::size_t array,
      const std::function<void(std::uint64_t first_row, std::uint64_t rows, std::byte* data)>& change);

 private:
  void reserve(std::uint64_t rows);
  void write_by(std::size_t array, std::uint64_t first, std::uint64_t bytes, std::uint64_t unit,
                const Fill& read);
  /// Adds a gradient to `collected_`; exactly one of `host` and `device` is set.
  void collect(const protocol::PushHeader& header, std::span<const std::uint32_t> rows, const std::byte* host,
               std::byte* device, const UpdateStep& step);
  /// Launches an update. `gradient` and `rows` (null: dense) are in GPU memory.
  void update(const std::byte* rows, std::uint64_t first_row, std::uint64_t count, std::byte* gradient,
              const UpdateStep& step);
  /// Applies an operation that has no GPU kernel: copies the rows to the host and back. Blocks.
  template <class T>
  void operate(protocol::RowOp op, std::span<const std::uint32_t> rows, std::uint64_t first_row,
               std::uint64_t count, const std::byte* values);
  gpu::RowCopy row_copy(std::size_t array, const std::byte* rows, std::uint64_t count,
                        std::byte* outside) const;

  std::shared_ptr<ShardGpu> gpu_;
  protocol::CreateShard description_;
  Optimizer optimizer_;  // with the learning rate of the last update
  std::uint64_t width_;
  std::vector<gpu::Memory> memory_;
  gpu::Memory gradient_;  // copy made by apply_from_device, which the updater may overwrite
  gpu::Event copied_;     // completes once the copy is in `gradient_`
  gpu::Updater updater_;
  std::uint64_t updates_ = 0;
  CollectedPush collected_;
};

}  // namespace capstan::ps

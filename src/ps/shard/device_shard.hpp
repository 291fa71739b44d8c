// device_shard.hpp -- values and slots of a shard in the memory of a GPU, and what may be done to them.
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

/// Arrays are the values (0) and the slots in the order of protocol::slots_of. One thread at a time, the
/// GPU's.
class DeviceShard {
 public:
  struct Array {
    std::byte* data = nullptr;
    std::uint64_t row_bytes = 0;
  };

  /// Not filled, with all the memory that `apply` will ever need. Throws Error: resource_exhausted,
  /// invalid_argument (more rows than a GPU's kernels can take).
  DeviceShard(std::shared_ptr<ShardGpu> gpu, const protocol::CreateShard& description);

  ShardGpu& gpu() const noexcept { return *gpu_; }
  std::uint64_t rows() const noexcept { return description_.rows; }
  /// In the variable.
  std::uint64_t first_row() const noexcept { return description_.first_row; }
  std::size_t arrays() const noexcept { return memory_.size(); }
  Array array(std::size_t number) const;
  /// Of all arrays.
  std::uint64_t bytes() const noexcept;

  /// Takes an entry of a push; `rows` and `values` may be reused on return. What follows it of the same push
  /// may be given to the GPU together with it: by its last entry, or before anything else is. `step` is t of
  /// Adam and AdamW. REQUIRES: it fits the shard.
  void apply(const protocol::PushHeader& header, std::span<const std::uint32_t> rows, const std::byte* values,
             std::int64_t step);
  /// The same of a gradient that lies in the GPU's memory, may be changed, and stays until the GPU has
  /// settled.
  void apply_in_room(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                     std::byte* gradient_there, std::int64_t step);

  /// Memory for `apply_from_gpu` of so many rows. Throws Error(resource_exhausted).
  void reserve_from_gpu(std::uint64_t rows);
  /// The same of a gradient in the GPU's memory, which is there when `made` has passed: waits for that.
  /// REQUIRES: room for it was reserved.
  void apply_from_gpu(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                      const std::byte* gradient_there, const gpu::Event& made, std::int64_t step);
  /// gpu::MappedMemory::key of the values.
  std::vector<std::byte> key() const;

  /// Rows of an array in the order asked for, after all that was given to the GPU. Fastest to pinned memory.
  /// REQUIRES: row numbers within the shard.
  void read_rows(std::size_t array, std::span<const std::uint32_t> rows, std::byte* out) const;
  void read(std::size_t array, std::uint64_t first_byte, std::span<std::byte> out) const;
  /// The same to the memory of the GPU, without waiting.
  void gather(std::size_t array, std::span<const std::uint32_t> rows, std::byte* out_there) const;

  /// Puts bytes [first, first + bytes), whole rows, into `to`.
  using Fill = std::function<void(std::uint64_t first, std::uint64_t bytes, std::byte* to)>;
  /// All rows of an array, a piece after the other.
  void fill(std::size_t array, const Fill& fill);
  void fill_with_zeros();
  /// Bytes [first, first + bytes), which `read` puts where it is told to.
  void write(std::size_t array, std::uint64_t first, std::uint64_t bytes, const Fill& read);
  /// Hands all rows of an array to `change`, a piece after the other, and takes them back.
  void change(
      std::size_t array,
      const std::function<void(std::uint64_t first_row, std::uint64_t rows, std::byte* data)>& change);

 private:
  void reserve(std::uint64_t rows);
  void write_by(std::size_t array, std::uint64_t first, std::uint64_t bytes, std::uint64_t unit,
                const Fill& read);
  void collect(const protocol::PushHeader& header, std::span<const std::uint32_t> rows, const std::byte* here,
               std::byte* there, std::int64_t step);
  /// Gives it to the GPU, in whose memory `gradient` and `rows` (null: dense) are.
  void update(const std::byte* rows, std::uint64_t first_row, std::uint64_t count, std::byte* gradient,
              std::int64_t step);
  /// On the host, on a copy of the rows.
  template <class T>
  void operate(protocol::RowOp op, std::span<const std::uint32_t> rows, std::uint64_t first_row,
               std::uint64_t count, const std::byte* values);
  gpu::RowCopy row_copy(std::size_t array, const std::byte* rows, std::uint64_t count,
                        std::byte* outside) const;

  std::shared_ptr<ShardGpu> gpu_;
  protocol::CreateShard description_;
  std::uint64_t width_;
  std::vector<gpu::Memory> memory_;
  gpu::Memory gradient_;  // of a push from the GPU, which the updater may change
  gpu::Event taken_;
  gpu::Updater updater_;
  std::uint64_t updates_ = 0;
  CollectedPush collected_;
};

}  // namespace capstan::ps

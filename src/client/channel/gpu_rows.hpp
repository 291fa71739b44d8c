// gpu_rows.hpp -- kernels of this process that read shards in a ps's GPU, and gather rows for pushes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "gpu/gpu.hpp"
#include "gpu/staging.hpp"

namespace capstan::client {

/// Kernels of one GPU of this process. Used by one thread at a time. The caller may reuse `ids` and `order`
/// on return; `out` and `to` are written in stream order. REQUIRES: streams of this GPU.
class GpuRows {
 public:
  explicit GpuRows(int gpu);

  int gpu() const noexcept { return gpu_; }

  struct Part {
    const std::byte* values = nullptr;
    std::uint64_t first_row = 0;  // in the table
    std::uint64_t rows = 0;
  };
  /// Copies rows `ids` of a table into `out`. `table` lists its parts in row order. REQUIRES: all ids are
  /// in the table.
  void gather(const gpu::Stream& stream, gpu::Staging& staging, std::span<const Part> table,
              std::uint64_t row_bytes, std::span<const std::int64_t> ids, std::byte* out);

  /// Copies bytes of a shard into `out`.
  void copy(const gpu::Stream& stream, const std::byte* from, std::uint64_t bytes, std::byte* out);

  /// Uploads the positions that take() uses, until the next call for this GPU.
  void upload_order(const gpu::Stream& stream, gpu::Staging& staging, std::span<const std::uint32_t> order);
  /// Copies rows order[first], order[first + 1], ... of `from` into `to`. REQUIRES: upload_order() on this
  /// stream.
  void take(const gpu::Stream& stream, const Part& from, std::uint64_t row_bytes, std::uint64_t first,
            std::uint64_t count, std::byte* to);
  /// Returns `bytes` bytes of GPU memory, valid until the next call. REQUIRES: kernels that use the
  /// previous memory have finished. Throws Error(resource_exhausted).
  std::byte* scratch(std::uint64_t bytes);

  /// Passes when the last kernel has finished. Shared, because it may outlive this object.
  const std::shared_ptr<gpu::Event>& last_use() const noexcept { return used_; }

 private:
  int gpu_;
  gpu::Values<std::uint32_t> rows_;
  gpu::Values<std::uint64_t> addresses_;
  gpu::Values<std::uint32_t> first_bad_;  // required by RowCopy; row numbers are always valid
  gpu::Values<std::byte> scratch_;
  std::shared_ptr<gpu::Event> used_;  // last use of the arrays above
};

}  // namespace capstan::client

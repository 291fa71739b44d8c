// gpu_rows.hpp -- rows in the memory of GPUs, moved by this process's own kernels: read from shards that they
// reach, without the ps, and put together for pushes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "gpu/gpu.hpp"
#include "gpu/staging.hpp"

namespace capstan::client {

/// For kernels of one GPU. Used by one thread at a time. `ids` and `order` may be reused on return; `out` and
/// `to` are there in the stream's order. REQUIRES: streams of this GPU.
class GpuRows {
 public:
  explicit GpuRows(int gpu);

  /// The values of a shard by what its ps says of them; null where this GPU does not reach them. Asked once.
  template <class Key>
  const std::byte* values(std::uint32_t variable, std::uint32_t shard, const Key& key) {
    auto known = mapped_.find({variable, shard});
    if (known == mapped_.end()) {
      known = mapped_.emplace(std::pair(variable, shard), gpu::MappedMemory(gpu_, key())).first;
    }
    return known->second.data();
  }
  /// Lets go of all ps' memory, when nothing reads it any more.
  void forget() {
    used_.wait();
    mapped_.clear();
  }

  struct Part {
    const std::byte* values = nullptr;
    std::uint64_t first_row = 0;  // in the table
    std::uint64_t rows = 0;
  };
  /// Rows `ids` of a table, whose parts are given in the order of their rows, into `out`. REQUIRES: ids
  /// within the table.
  void gather(const gpu::Stream& stream, gpu::Staging& staging, std::span<const Part> table,
              std::uint64_t row_bytes, std::span<const std::int64_t> ids, std::byte* out);

  /// Bytes of a shard into `out`.
  void copy(const gpu::Stream& stream, const std::byte* from, std::uint64_t bytes, std::byte* out);

  /// What `take` goes by, until the next call for this GPU.
  void name(const gpu::Stream& stream, gpu::Staging& staging, std::span<const std::uint32_t> order);
  /// Rows order[first], ... of those in `from` into `to`. REQUIRES: a stream that has been given `name`.
  void take(const gpu::Stream& stream, const Part& from, std::uint64_t row_bytes, std::uint64_t first,
            std::uint64_t count, std::byte* to);
  /// Memory of so many bytes, until the next call. REQUIRES: what used it is done. Throws
  /// Error(resource_exhausted).
  std::byte* scratch(std::uint64_t bytes);

 private:
  int gpu_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, gpu::MappedMemory> mapped_;
  gpu::Values<std::uint32_t> rows_;
  gpu::Values<std::uint64_t> addresses_;
  gpu::Values<std::uint32_t> first_bad_;  // row numbers are never bad
  gpu::Values<std::byte> scratch_;
  gpu::Event used_;  // what is here may be used again
};

}  // namespace capstan::client

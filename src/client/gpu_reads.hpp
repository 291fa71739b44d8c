// gpu_reads.hpp -- rows of shards that lie in a GPU which this process reaches: read by its own kernels,
// without the ps.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "device/gpu.hpp"
#include "device/staging.hpp"

namespace capstan::client {

/// For kernels of one GPU. Used by one thread at a time.
class GpuReads {
 public:
  explicit GpuReads(int gpu);

  /// The values of a shard by what its ps says of them; null where this GPU does not reach them. Asked once.
  template <class Key>
  const std::byte* values(std::uint32_t variable, std::uint32_t shard, const Key& key) {
    auto known = mapped_.find({variable, shard});
    if (known == mapped_.end()) {
      known = mapped_.emplace(std::pair(variable, shard), device::MappedMemory(gpu_, key())).first;
    }
    return known->second.data();
  }
  /// The ps have other memory now.
  void forget() noexcept { mapped_.clear(); }

  struct Part {
    const std::byte* values = nullptr;
    std::uint64_t first_row = 0;  // in the table
    std::uint64_t rows = 0;
  };
  /// Rows `ids` of a table, whose parts are given in the order of their rows, into `out`, in the stream's
  /// order. `ids` may be reused on return. REQUIRES: ids within the table, and a stream of this GPU.
  void gather(const device::Stream& stream, device::Staging& staging, std::span<const Part> table,
              std::uint64_t row_bytes, std::span<const std::int64_t> ids, std::byte* out);

 private:
  void gather_of_one(const device::Stream& stream, device::Staging& staging, const Part& table,
                     std::uint64_t row_bytes, std::span<const std::int64_t> ids, std::byte* out);

  int gpu_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, device::MappedMemory> mapped_;
  device::Values<std::uint32_t> rows_;
  device::Values<std::uint64_t> addresses_;
  device::Values<std::uint32_t> first_bad_;  // ids are never bad
  device::Event gathered_;                   // what is here may be used again
};

}  // namespace capstan::client

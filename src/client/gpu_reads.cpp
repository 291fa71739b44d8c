// gpu_reads.cpp -- row numbers go to the GPU, rows within it.
#include "client/gpu_reads.hpp"

#include "device/row_ops.hpp"

namespace capstan::client {

GpuReads::GpuReads(int gpu) : gpu_(gpu), first_bad_(gpu, 1), gathered_(gpu) {}

void GpuReads::gather(const device::Stream& stream, device::Staging& staging, const std::byte* table,
                      std::uint64_t table_rows, std::uint64_t row_bytes, std::span<const std::int64_t> ids,
                      std::byte* out) {
  constexpr std::uint64_t kNumber = sizeof(std::uint32_t);
  stream.begin_after(gathered_);
  if (rows_.size() < ids.size()) {
    rows_ = {};
    rows_ = device::Values<std::uint32_t>(gpu_, ids.size());
  }
  staging.to_gpu(stream, reinterpret_cast<std::byte*>(rows_.data()), ids.size() * kNumber, kNumber,
                 [&](std::uint64_t first, std::size_t bytes, std::byte* to) {
                   auto* numbers = reinterpret_cast<std::uint32_t*>(to);
                   const std::int64_t* from = ids.data() + first / kNumber;
                   for (std::size_t i = 0; i < bytes / kNumber; ++i)
                     numbers[i] = static_cast<std::uint32_t>(from[i]);
                 });
  // It only reads the table.
  device::gather(stream, {const_cast<std::byte*>(table), static_cast<std::uint32_t>(table_rows), row_bytes,
                          rows_.data(), static_cast<std::uint32_t>(ids.size()), out, first_bad_.data()});
  gathered_.record(stream);
}

}  // namespace capstan::client

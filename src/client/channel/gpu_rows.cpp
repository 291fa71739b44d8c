// gpu_rows.cpp -- copies row numbers or row addresses to the GPU, then rows within it.
#include "client/channel/gpu_rows.hpp"

#include <algorithm>

#include "gpu/row_ops.hpp"

namespace capstan::client {
namespace {

/// Fills there[i] = number(i), in stream order.
template <class T, class Number>
void send(const gpu::Stream& stream, gpu::Staging& staging, gpu::Values<T>& there, std::size_t count,
          const Number& number) {
  staging.to_gpu(stream, reinterpret_cast<std::byte*>(there.data()), count * sizeof(T), sizeof(T),
                 [&](std::uint64_t first, std::size_t bytes, std::byte* to) {
                   auto* numbers = reinterpret_cast<T*>(to);
                   for (std::size_t i = 0; i < bytes / sizeof(T); ++i)
                     numbers[i] = number(first / sizeof(T) + i);
                 });
}

/// Largest power of two, up to 16, that divides the addresses and the length of all rows.
std::uint64_t multiple_of(std::span<const GpuRows::Part> table, std::uint64_t row_bytes) {
  std::uint64_t all = row_bytes | 16;
  for (const GpuRows::Part& part : table) all |= reinterpret_cast<std::uintptr_t>(part.values);
  return all & ~(all - 1);
}

}  // namespace

GpuRows::GpuRows(int gpu) : gpu_(gpu), first_bad_(gpu, 1), used_(std::make_shared<gpu::Event>(gpu)) {}

void GpuRows::gather(const gpu::Stream& stream, gpu::Staging& staging, std::span<const Part> table,
                     std::uint64_t row_bytes, std::span<const std::int64_t> ids, std::byte* out) {
  stream.begin_after(*used_);
  if (table.size() == 1) {
    gpu::grow(rows_, gpu_, ids.size());
    send(stream, staging, rows_, ids.size(),
         [&](std::size_t i) { return static_cast<std::uint32_t>(ids[i]); });
    take(stream, table.front(), row_bytes, 0, ids.size(), out);
    return;
  }
  gpu::grow(addresses_, gpu_, ids.size());
  send(stream, staging, addresses_, ids.size(), [&](std::size_t i) -> std::uint64_t {
    const auto row = static_cast<std::uint64_t>(ids[i]);
    const auto part =
        std::upper_bound(table.begin(), table.end(), row,
                         [](std::uint64_t number, const Part& p) { return number < p.first_row + p.rows; });
    return reinterpret_cast<std::uintptr_t>(part->values + (row - part->first_row) * row_bytes);
  });
  gpu::gather(stream, {addresses_.data(), static_cast<std::uint32_t>(ids.size()), row_bytes,
                       multiple_of(table, row_bytes), out});
  used_->record(stream);
}

void GpuRows::copy(const gpu::Stream& stream, const std::byte* from, std::uint64_t bytes, std::byte* out) {
  stream.begin_after(*used_);
  gpu::copy(stream, out, from, bytes);
  used_->record(stream);
}

void GpuRows::upload_order(const gpu::Stream& stream, gpu::Staging& staging,
                           std::span<const std::uint32_t> order) {
  stream.begin_after(*used_);
  gpu::grow(rows_, gpu_, order.size());
  send(stream, staging, rows_, order.size(), [&](std::size_t i) { return order[i]; });
  used_->record(stream);
}

void GpuRows::take(const gpu::Stream& stream, const Part& from, std::uint64_t row_bytes, std::uint64_t first,
                   std::uint64_t count, std::byte* to) {
  // The gather only reads the table.
  gpu::gather(stream, gpu::RowCopy{const_cast<std::byte*>(from.values), static_cast<std::uint32_t>(from.rows),
                                   row_bytes, rows_.data() + first, static_cast<std::uint32_t>(count), to,
                                   first_bad_.data()});
  used_->record(stream);
}

std::byte* GpuRows::scratch(std::uint64_t bytes) {
  gpu::grow(scratch_, gpu_, bytes);
  return scratch_.data();
}

}  // namespace capstan::client

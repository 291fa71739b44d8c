// gpu_reads.cpp -- row numbers, or where rows lie, go to the GPU, rows within it.
#include "client/gpu_reads.hpp"

#include <algorithm>

#include "device/row_ops.hpp"

namespace capstan::client {
namespace {

/// Makes `there` at least so long; what it held goes.
template <class T>
void make_room(device::Values<T>& there, int gpu, std::size_t count) {
  if (there.size() >= count) return;
  there = {};
  there = device::Values<T>(gpu, count);
}

/// there[i] = number(i), in the stream's order.
template <class T, class Number>
void send(const device::Stream& stream, device::Staging& staging, device::Values<T>& there, std::size_t count,
          const Number& number) {
  staging.to_gpu(stream, reinterpret_cast<std::byte*>(there.data()), count * sizeof(T), sizeof(T),
                 [&](std::uint64_t first, std::size_t bytes, std::byte* to) {
                   auto* numbers = reinterpret_cast<T*>(to);
                   for (std::size_t i = 0; i < bytes / sizeof(T); ++i)
                     numbers[i] = number(first / sizeof(T) + i);
                 });
}

/// The largest power of two of which all rows' addresses and lengths are multiples, up to 16.
std::uint64_t multiple_of(std::span<const GpuReads::Part> table, std::uint64_t row_bytes) {
  std::uint64_t all = row_bytes | 16;
  for (const GpuReads::Part& part : table) all |= reinterpret_cast<std::uintptr_t>(part.values);
  return all & ~(all - 1);
}

}  // namespace

GpuReads::GpuReads(int gpu) : gpu_(gpu), first_bad_(gpu, 1), gathered_(gpu) {}

void GpuReads::gather(const device::Stream& stream, device::Staging& staging, std::span<const Part> table,
                      std::uint64_t row_bytes, std::span<const std::int64_t> ids, std::byte* out) {
  stream.begin_after(gathered_);
  if (table.size() == 1) {
    gather_of_one(stream, staging, table.front(), row_bytes, ids, out);
  } else {
    make_room(addresses_, gpu_, ids.size());
    send(stream, staging, addresses_, ids.size(), [&](std::size_t i) -> std::uint64_t {
      const auto row = static_cast<std::uint64_t>(ids[i]);
      const auto behind = std::upper_bound(
          table.begin(), table.end(), row,
          [](std::uint64_t number, const Part& part) { return number < part.first_row + part.rows; });
      return reinterpret_cast<std::uintptr_t>(behind->values + (row - behind->first_row) * row_bytes);
    });
    device::gather(stream, {addresses_.data(), static_cast<std::uint32_t>(ids.size()), row_bytes,
                            multiple_of(table, row_bytes), out});
  }
  gathered_.record(stream);
}

void GpuReads::gather_of_one(const device::Stream& stream, device::Staging& staging, const Part& table,
                             std::uint64_t row_bytes, std::span<const std::int64_t> ids, std::byte* out) {
  make_room(rows_, gpu_, ids.size());
  send(stream, staging, rows_, ids.size(), [&](std::size_t i) { return static_cast<std::uint32_t>(ids[i]); });
  // It only reads the table.
  device::gather(stream, device::RowCopy{const_cast<std::byte*>(table.values),
                                         static_cast<std::uint32_t>(table.rows), row_bytes, rows_.data(),
                                         static_cast<std::uint32_t>(ids.size()), out, first_bad_.data()});
}

}  // namespace capstan::client

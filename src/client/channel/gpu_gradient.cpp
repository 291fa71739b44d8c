// gpu_gradient.cpp -- copies contiguous rows of a gradient on a GPU, and gathers scattered ones.
#include "client/channel/gpu_gradient.hpp"

namespace capstan::client {

GpuGradient::GpuGradient(const gpu::Stream& stream, gpu::Staging& staging, GpuRows& kernels,
                         const std::byte* values, std::uint64_t rows, std::uint64_t row_bytes,
                         std::span<const std::uint32_t> order)
    : stream_(stream),
      kernels_(kernels),
      values_{values, 0, rows},
      row_bytes_(row_bytes),
      order_(order),
      ready_(stream.device()) {
  if (!order_.empty()) kernels_.upload_order(stream_, staging, order_);
}

void GpuGradient::reserve() {
  if (!order_.empty()) gathered_ = kernels_.scratch(values_.rows * row_bytes_);
}

void GpuGradient::copy(const PushRows& push, std::uint64_t first, std::uint64_t count, std::byte* to) {
  if (order_.empty()) {
    gpu::copy(stream_, to, push.gradient + first * row_bytes_, count * row_bytes_);
  } else {
    kernels_.take(stream_, values_, row_bytes_, position(push) + first, count, to);
  }
  ready_.record(stream_);
}

const std::byte* GpuGradient::contiguous(const PushRows& push) {
  if (order_.empty()) {
    ready_.record(stream_);
    return push.gradient;
  }
  std::byte* const rows = gathered_ + position(push) * row_bytes_;
  copy(push, 0, push.count, rows);
  return rows;
}

}  // namespace capstan::client

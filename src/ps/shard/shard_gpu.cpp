// shard_gpu.cpp -- double-buffered staging: two halves of one host buffer and one GPU buffer.
#include "ps/shard/shard_gpu.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.hpp"

namespace capstan::ps {

ShardGpu::ShardGpu(int number, bool deterministic)
    : stream_(number),
      first_bad_(number, sizeof(std::uint32_t)),
      updates_(std::make_shared<gpu::UpdateScratch>(deterministic)),
      sent_{gpu::Event(number), gpu::Event(number)} {
  const std::uint32_t none = ~std::uint32_t{0};
  gpu::copy(stream_, first_bad_.data(), &none, sizeof none);
  stream_.wait();
}

ShardGpu::~ShardGpu() {
  try {
    stream_.wait();  // the stream may still use the buffers
  } catch (const std::exception& error) {
    log::error("{}", error.what());
  }
}

void ShardGpu::launch_collected() {
  if (const auto launch = std::exchange(launch_, nullptr)) launch();
}

const gpu::Stream& ShardGpu::stream() {
  launch_collected();
  return stream_;
}

void ShardGpu::collect(std::function<void()> launch) {
  launch_collected();
  launch_ = std::move(launch);
}

void ShardGpu::reserve(std::uint64_t bytes) {
  if (aligned(bytes) <= half_bytes_) return;
  const std::uint64_t half = std::max(aligned(bytes), kPieceBytes);
  gpu::PinnedMemory host(2 * half);
  gpu::Memory device(number(), 2 * half);
  settle();
  host_ = std::move(host);
  device_ = std::move(device);
  half_bytes_ = half;
}

ShardGpu::Staging ShardGpu::stage(std::uint64_t bytes) {
  launch_collected();
  const std::uint64_t size = aligned(bytes);
  reserve(size);
  if (used_ + size > half_bytes_) {
    sent_[half_].record(stream_);
    half_ = 1 - half_;
    sent_[half_].wait();
    used_ = 0;
  }
  const std::uint64_t at = half_ * half_bytes_ + used_;
  used_ += size;
  return {host_.data() + at, device_.data() + at};
}

void ShardGpu::settle() {
  launch_collected();
  stream_.wait();
  used_ = 0;
}

}  // namespace capstan::ps

// shard_gpu.cpp -- two memories of the same size, handed out from the beginning of one half and the other.
#include "ps/shard/shard_gpu.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.hpp"

namespace capstan::ps {

ShardGpu::ShardGpu(int number, bool deterministic)
    : stream_(number),
      first_bad_(number, sizeof(std::uint32_t)),
      updates_(std::make_shared<gpu::UpdateRoom>(deterministic)),
      given_{gpu::Event(number), gpu::Event(number)} {
  const std::uint32_t none = ~std::uint32_t{0};
  gpu::copy(stream_, first_bad_.data(), &none, sizeof none);
  stream_.wait();
}

ShardGpu::~ShardGpu() {
  try {
    stream_.wait();  // which uses the memories that go now
  } catch (const std::exception& error) {
    log::error("{}", error.what());
  }
}

void ShardGpu::give_collected() {
  if (const auto give = std::exchange(give_, nullptr)) give();
}

const gpu::Stream& ShardGpu::stream() {
  give_collected();
  return stream_;
}

void ShardGpu::collect(std::function<void()> give) {
  give_collected();
  give_ = std::move(give);
}

void ShardGpu::reserve(std::uint64_t bytes) {
  if (aligned(bytes) <= half_bytes_) return;
  const std::uint64_t half = std::max(aligned(bytes), kPieceBytes);
  gpu::PinnedMemory here(2 * half);
  gpu::Memory there(number(), 2 * half);
  settle();
  here_ = std::move(here);
  there_ = std::move(there);
  half_bytes_ = half;
}

ShardGpu::Room ShardGpu::room(std::uint64_t bytes) {
  give_collected();
  const std::uint64_t size = aligned(bytes);
  reserve(size);
  if (used_ + size > half_bytes_) {
    given_[half_].record(stream_);
    half_ = 1 - half_;
    given_[half_].wait();
    used_ = 0;
  }
  const std::uint64_t at = half_ * half_bytes_ + used_;
  used_ += size;
  return {here_.data() + at, there_.data() + at};
}

void ShardGpu::settle() {
  give_collected();
  stream_.wait();
  used_ = 0;
}

}  // namespace capstan::ps

// shard_gpu.cpp -- two memories of the same size, handed out from their beginning until somebody waits.
#include "store/shard_gpu.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.hpp"

namespace capstan::store {
namespace {

/// Of one GPU's allocations; enough for its widest loads.
constexpr std::uint64_t kAlignment = 256;
/// While one piece is on its way, the next is written.
constexpr std::uint64_t kRoom = 2 * ShardGpu::kPieceBytes;

constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

ShardGpu::ShardGpu(int number, bool deterministic)
    : stream_(number),
      first_bad_(number, sizeof(std::uint32_t)),
      updates_(std::make_shared<device::UpdateRoom>(deterministic)) {
  const std::uint32_t none = ~std::uint32_t{0};
  device::copy(stream_, first_bad_.data(), &none, sizeof none);
  stream_.wait();
}

ShardGpu::~ShardGpu() {
  try {
    stream_.wait();  // which uses the memories that go now
  } catch (const std::exception& error) {
    log::error("{}", error.what());
  }
}

void ShardGpu::reserve(std::uint64_t bytes) {
  if (aligned(bytes) <= here_.size()) return;
  const std::uint64_t all = std::max(aligned(bytes), kRoom);
  device::PinnedMemory here(all);
  device::Memory there(number(), all);
  settle();
  here_ = std::move(here);
  there_ = std::move(there);
}

ShardGpu::Room ShardGpu::room(std::uint64_t bytes) {
  const std::uint64_t size = aligned(bytes);
  reserve(size);
  if (used_ + size > here_.size()) settle();
  const Room room{here_.data() + used_, there_.data() + used_};
  used_ += size;
  return room;
}

void ShardGpu::settle() {
  stream_.wait();
  used_ = 0;
}

}  // namespace capstan::store

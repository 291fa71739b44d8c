// shard_gpu.cpp -- two memories of the same size, handed out from their beginning until somebody waits.
#include "store/shard_gpu.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.hpp"

namespace capstan::store {
namespace {

/// While one piece is on its way, the next is written.
constexpr std::uint64_t kRoom = 2 * ShardGpu::kPieceBytes;

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

void ShardGpu::give_collected() {
  if (const auto give = std::exchange(give_, nullptr)) give();
}

const device::Stream& ShardGpu::stream() {
  give_collected();
  return stream_;
}

void ShardGpu::collect(std::function<void()> give) {
  give_collected();
  give_ = std::move(give);
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
  give_collected();
  const std::uint64_t size = aligned(bytes);
  reserve(size);
  if (used_ + size > here_.size()) settle();
  const Room room{here_.data() + used_, there_.data() + used_};
  used_ += size;
  return room;
}

void ShardGpu::settle() {
  give_collected();
  stream_.wait();
  used_ = 0;
}

}  // namespace capstan::store

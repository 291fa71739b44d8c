// store_device.cpp -- finds shards on the GPU under the mutex of the store.
#include "ps/shard/store_device.hpp"

#include <fmt/format.h>

#include <mutex>
#include <string>

#include "capstan/error.hpp"
#include "ps/shard/device_shard.hpp"
#include "ps/shard/store.hpp"

namespace capstan::ps {

DeviceShard* StoreDevice::find(std::uint32_t variable, std::uint32_t shard) const {
  return dynamic_cast<DeviceShard*>(&store_.find(variable, shard));
}

void StoreDevice::throw_if_failed() {
  if (!context_.failed()) return;
  const std::lock_guard lock(store_.mutex_);
  context_.rethrow_failure();
}

bool StoreDevice::reserve(std::uint32_t variable, std::uint32_t shard, int gpu, std::uint64_t rows) {
  const std::lock_guard lock(store_.mutex_);
  DeviceShard* const found = find(variable, shard);
  return found != nullptr && store_.persistent_ == nullptr && found->reserve_from_device(gpu, rows);
}

void StoreDevice::apply(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                        const std::byte* values, const gpu::Event& ready) {
  const std::lock_guard lock(store_.mutex_);
  DeviceShard* const shard = find(header.variable, header.shard);
  if (shard == nullptr || !shard->fits(header, rows, values)) {
    const std::string& name = store_.find(header.variable, header.shard).description().name;
    throw Error(Code::internal, fmt::format("cannot apply a push to \"{}\": its {} rows do not fit shard {}",
                                            name, header.rows, header.shard));
  }
  if (!store_.ledger_.enter(header)) return;
  store_.count(header, *shard);
  shard->apply_from_device(header, rows, values, ready);
}

std::vector<std::byte> StoreDevice::key(std::uint32_t variable, std::uint32_t shard) {
  const std::lock_guard lock(store_.mutex_);
  const DeviceShard* const found = find(variable, shard);
  return found != nullptr ? found->table().key() : std::vector<std::byte>();
}

protocol::StagingBufferKey StoreDevice::open_staging_buffer(int rank, std::uint64_t bytes) {
  const std::lock_guard lock(store_.mutex_);
  return context_.open_staging_buffer(rank, bytes);
}

void StoreDevice::release_staging_buffers(int rank) {
  const std::lock_guard lock(store_.mutex_);
  context_.release_staging_buffers(rank);
}

}  // namespace capstan::ps

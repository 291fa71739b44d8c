// store_device.hpp -- operations of a store that involve the GPU of its ps.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "protocol/device_push_sink.hpp"
#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"
#include "ps/shard/device_context.hpp"

namespace capstan::ps {

class DeviceShard;
class Store;

/// Thread-safe: takes the mutex of the store.
class StoreDevice final : public protocol::DevicePushSink {
 public:
  StoreDevice(Store& store, int ps_index) : store_(store), context_(ps_index) {}

  /// See DeviceContext::configure. REQUIRES: the store has no shards yet.
  void configure(DeviceContext::FindGpu find, bool deterministic) {
    context_.configure(std::move(find), deterministic);
  }
  /// Throws the first failure of the GPU, if any, whichever call observed it. Pushes are lost then, so the ps
  /// cannot continue.
  void throw_if_failed();

  bool reserve(std::uint32_t variable, std::uint32_t shard, int gpu, std::uint64_t rows) override;
  void apply(const protocol::PushHeader& header, std::span<const std::uint32_t> rows, const std::byte* values,
             const gpu::Event& ready) override;

  /// Returns the gpu::MappedMemory::key by which processes of this host, and threads of this process, read
  /// the values of a shard. Empty if the shard is not on a GPU. Throws Error(not_found).
  std::vector<std::byte> key(std::uint32_t variable, std::uint32_t shard);
  /// Opens a buffer into which kernels of `rank` write gradients for shards on the GPU. Returns an empty key
  /// if no shard is on a GPU. Throws Error(resource_exhausted).
  protocol::StagingBufferKey open_staging_buffer(int rank, std::uint64_t bytes);
  /// See StagingBuffers::release.
  void release_staging_buffers(int rank);

  /// For the store and its shards. REQUIRES: the caller holds the mutex of the store.
  DeviceContext& context() noexcept { return context_; }
  const DeviceContext& context() const noexcept { return context_; }

 private:
  /// Returns null if the shard is not on a GPU. Throws Error(not_found).
  DeviceShard* find(std::uint32_t variable, std::uint32_t shard) const;

  Store& store_;
  DeviceContext context_;
};

}  // namespace capstan::ps

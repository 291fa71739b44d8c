// device_push_sink.hpp -- accepts pushes of gradients in the memory of a GPU of the same process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capstan::gpu {
class Event;
}  // namespace capstan::gpu

namespace capstan::protocol {

struct PushHeader;

/// Accepts pushes without a copy through host memory; implemented by the store of an embedded cluster.
/// Thread-safe.
class DevicePushSink {
 public:
  virtual ~DevicePushSink() = default;
  /// If the shard accepts gradients from the memory of GPU `gpu`, allocates memory for a push of `rows` rows
  /// and returns true; otherwise returns false. Throws Error(resource_exhausted).
  virtual bool reserve(std::uint32_t variable, std::uint32_t shard, int gpu, std::uint64_t rows) = 0;
  /// Like PushSink::apply, but `values` are in GPU memory and valid once `ready` has completed. Blocks until
  /// they have been copied. REQUIRES: `reserve` returned true since the last push to the shard.
  virtual void apply(const PushHeader& header, std::span<const std::uint32_t> rows, const std::byte* values,
                     const gpu::Event& ready) = 0;
};

}  // namespace capstan::protocol

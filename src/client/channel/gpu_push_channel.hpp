// gpu_push_channel.hpp -- pushes gradients in GPU memory to shards in the ps's GPU, without a copy in host
// memory.
#pragma once

#include <cstdint>
#include <vector>

#include "client/channel/gpu_gradient.hpp"
#include "client/channel/ring_push_channel.hpp"
#include "protocol/device_push_sink.hpp"

namespace capstan::client {

/// Exists beside a PushChannel to the same ps, with the same lifetime; the ps applies the entries of both in
/// push order. Used by the thread that owns the data fabric. Throws the same errors as PushChannel.
class GpuPushChannel {
 public:
  virtual ~GpuPushChannel() = default;

  /// Allocates the memory that a push of a gradient in the memory of `gpu` needs. Returns false if this
  /// channel cannot push that gradient. Throws Error(resource_exhausted).
  virtual bool reserve(const PushRows& push, int gpu) = 0;
  /// Sends a push. PushRows::gradient and PushRows::order locate its rows in the memory of `gradient`, which
  /// the caller may reuse on return. REQUIRES: reserve() returned true since the last push to that shard, and
  /// the shard has no update group.
  virtual void push(const PushRows& push, PushNumbering& numbering, GpuGradient& gradient) = 0;
};

/// Pushes to a ps that is a thread of this process.
class InProcessGpuPushChannel final : public GpuPushChannel {
 public:
  /// Same arguments as InProcessPushChannel.
  InProcessGpuPushChannel(protocol::PushSink& sink, int rank, int ps) : sink_(sink), rank_(rank), ps_(ps) {}

  bool reserve(const PushRows& push, int gpu) override {
    protocol::DevicePushSink* const device = sink_.device();
    return device != nullptr && device->reserve(push.variable, push.shard, gpu, push.count);
  }
  void push(const PushRows& push, PushNumbering& numbering, GpuGradient& gradient) override;

 private:
  protocol::PushSink& sink_;
  int rank_;
  int ps_;
  std::vector<std::uint32_t> row_numbers_;
};

/// Pushes to another process of this host: kernels copy the gradient into a staging buffer on the ps's GPU.
/// Each entry in the mapped ring contains the BufferSlot of its rows.
class StagedGpuPushChannel final : public GpuPushChannel {
 public:
  /// REQUIRES: the ring is mapped; both arguments outlive the channel.
  StagedGpuPushChannel(PsSession& session, RingPushChannel& channel) : session_(session), channel_(channel) {}

  bool reserve(const PushRows& push, int gpu) override;
  void push(const PushRows& push, PushNumbering& numbering, GpuGradient& gradient) override;

 private:
  StagingBuffer& staging_buffer(int gpu);
  protocol::BufferSlot take_slot(StagingBuffer& buffer, std::uint64_t bytes);
  void write_entry(const PushRows& push, std::uint64_t first, std::uint64_t count, PushNumbering& numbering,
                   const StagingBuffer& buffer, const protocol::BufferSlot& slot);
  void require_memory(const StagingBuffer& buffer) const;

  PsSession& session_;
  RingPushChannel& channel_;
};

}  // namespace capstan::client

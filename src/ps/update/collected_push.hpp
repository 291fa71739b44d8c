// collected_push.hpp -- coalesces the entries of a push to a shard on a GPU into few launches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "ps/shard/shard_gpu.hpp"

namespace capstan::ps {

/// The number of an update of a shard, t of Adam, and its learning rate.
struct UpdateStep {
  std::int64_t number = 0;
  double learning_rate = 0;
  bool operator==(const UpdateStep&) const = default;
};

/// A push arrives in entries of 60 KiB, and launching each would cost some microseconds of the GPU.
/// Consecutive entries are concatenated, up to a piece (ShardGpu::kPieceBytes), and launched when the push or
/// the piece is complete, or before the GPU gets other work (ShardGpu::collect). Not thread-safe, like
/// ShardGpu.
class CollectedPush {
 public:
  /// Rows of a gradient in the memory of the host, or else of the device.
  struct Part {
    std::uint32_t rank = 0;  // of the pusher
    UpdateStep step = {};
    bool first = true;  // of the push
    bool last = true;
    std::span<const std::uint32_t> rows = {};  // empty: dense
    std::uint64_t first_row = 0;               // of a dense part
    std::uint64_t count = 0;
    const std::byte* host = nullptr;
    std::byte* device = nullptr;
  };
  /// An update whose rows and gradient are in GPU memory, in the order of the stream.
  struct Launch {
    const std::byte* rows = nullptr;  // null: dense
    std::uint64_t first_row = 0;
    std::uint64_t count = 0;
    std::byte* gradient = nullptr;
    UpdateStep step = {};
  };
  using OnLaunch = std::function<void(const Launch& launch)>;

  /// `row_bytes`: size of a row of the gradient; `capacity`: most rows of one launch. `on_launch` adds an
  /// update to the GPU's stream.
  CollectedPush(ShardGpu& gpu, std::uint64_t row_bytes, std::uint64_t capacity, OnLaunch on_launch);
  ~CollectedPush();
  CollectedPush(const CollectedPush&) = delete;
  CollectedPush& operator=(const CollectedPush&) = delete;

  /// Host memory of the part may be reused on return. REQUIRES: 1 to `capacity` rows.
  void add(const Part& part);

 private:
  bool continues(const Part& part) const;
  void begin(const Part& part);
  void launch();

  ShardGpu& gpu_;
  std::uint64_t row_bytes_;
  std::uint64_t most_;
  OnLaunch on_launch_;
  // The launch that is being collected:
  std::uint64_t capacity_ = 0;  // rows; 0: none
  std::uint32_t rank_ = 0;
  bool sparse_ = false;
  ShardGpu::Staging staging_;  // row numbers, then rows from the host
  std::byte* host_ = nullptr;  // staged rows, copied to `launch_.gradient`; null: they are on the device
  Launch launch_;
};

}  // namespace capstan::ps

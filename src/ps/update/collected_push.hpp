// collected_push.hpp -- coalesces the entries of a push to a shard on a GPU into few launches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "ps/shard/shard_gpu.hpp"

namespace capstan::ps {

/// Number of an update of a shard (t of Adam), and its learning rate.
struct UpdateStep {
  std::int64_t number = 0;
  double learning_rate = 0;
  bool operator==(const UpdateStep&) const = default;
};

/// A push arrives in entries of 60 KiB, and each launch costs microseconds of GPU time. Consecutive entries
/// are concatenated, up to a piece (ShardGpu::kPieceBytes), and applied by one launch: when the push or the
/// piece is complete, or before the GPU gets other work (ShardGpu::collect). Not thread-safe, like ShardGpu.
class CollectedPush {
 public:
  /// Rows of a gradient in host memory or in GPU memory.
  struct Part {
    std::uint32_t rank = 0;  // of the pusher
    UpdateStep step = {};
    bool first = true;                         // the first part of its push
    bool last = true;                          // the last part of its push
    std::span<const std::uint32_t> rows = {};  // empty: dense
    std::uint64_t first_row = 0;               // of a dense part
    std::uint64_t count = 0;
    const std::byte* host = nullptr;  // exactly one of `host` and `device` is set
    std::byte* device = nullptr;
  };
  /// An update whose row numbers and gradient are in GPU memory, valid in stream order.
  struct Launch {
    const std::byte* rows = nullptr;  // null: dense
    std::uint64_t first_row = 0;
    std::uint64_t count = 0;
    std::byte* gradient = nullptr;
    UpdateStep step = {};
  };
  using OnLaunch = std::function<void(const Launch& launch)>;

  /// `row_bytes`: size of a gradient row; `capacity`: maximum number of rows per launch. `on_launch` adds an
  /// update to the GPU's stream. `gpu` must outlive this object.
  CollectedPush(ShardGpu& gpu, std::uint64_t row_bytes, std::uint64_t capacity, OnLaunch on_launch);
  ~CollectedPush();
  CollectedPush(const CollectedPush&) = delete;
  CollectedPush& operator=(const CollectedPush&) = delete;

  /// Adds a part, and launches the update if it is complete. Host memory of the part may be reused on return.
  /// REQUIRES: 1 to `capacity` rows.
  void add(const Part& part);

 private:
  bool continues(const Part& part) const;
  void begin(const Part& part);
  void launch();

  ShardGpu& gpu_;
  std::uint64_t row_bytes_;
  std::uint64_t max_rows_;
  OnLaunch on_launch_;
  // The update that is being collected:
  std::uint64_t capacity_ = 0;  // rows; 0: none
  std::uint32_t rank_ = 0;
  bool sparse_ = false;
  ShardGpu::Staging staging_;  // row numbers, then rows from the host
  std::byte* host_ = nullptr;  // staged rows, to be copied to `launch_.gradient`; null: already on the GPU
  Launch launch_;
};

}  // namespace capstan::ps

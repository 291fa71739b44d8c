// collected_push.hpp -- entries of one push to a shard in a GPU, given to it as one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "ps/shard/shard_gpu.hpp"

namespace capstan::ps {

/// A push comes in entries of 60 KiB, each of which would take some microseconds of the GPU to begin with.
/// Entries that follow each other are put together, up to a piece (ShardGpu::kPieceBytes), and given to the
/// GPU when the push or the piece ends, or before anything else is (ShardGpu::collect). One thread at a time,
/// the GPU's.
class CollectedPush {
 public:
  /// Rows of a gradient, on one of the two sides.
  struct Part {
    std::uint32_t rank = 0;  // of the pusher
    std::int64_t step = 0;
    bool first = true;  // of the push
    bool last = true;
    std::span<const std::uint32_t> rows = {};  // empty: dense
    std::uint64_t first_row = 0;               // of a dense one
    std::uint64_t count = 0;
    const std::byte* here = nullptr;
    std::byte* there = nullptr;
  };
  /// In the GPU's memory, by now or in its stream's order.
  struct Given {
    const std::byte* rows = nullptr;  // null: dense
    std::uint64_t first_row = 0;
    std::uint64_t count = 0;
    std::byte* gradient = nullptr;
    std::int64_t step = 0;
  };
  using Give = std::function<void(const Given& given)>;

  /// Of a shard with rows of so many bytes, whose pushes come by `most` rows at most. `give` gives an update
  /// to the GPU's stream.
  CollectedPush(ShardGpu& gpu, std::uint64_t row_bytes, std::uint64_t most, Give give);
  ~CollectedPush();
  CollectedPush(const CollectedPush&) = delete;
  CollectedPush& operator=(const CollectedPush&) = delete;

  /// What is here may be reused on return. REQUIRES: of at most `most` rows, and not of none.
  void add(const Part& part);

 private:
  bool goes_on(const Part& part) const;
  void begin(const Part& part);
  void give();

  ShardGpu& gpu_;
  std::uint64_t row_bytes_;
  std::uint64_t most_;
  Give give_;
  // What is being collected:
  std::uint64_t capacity_ = 0;  // rows; 0: nothing is
  std::uint32_t rank_ = 0;
  bool sparse_ = false;
  ShardGpu::Room room_;        // of row numbers, then of rows that come from here
  std::byte* here_ = nullptr;  // on the way to `given_.gradient`; null: they are there
  Given given_;
};

}  // namespace capstan::ps

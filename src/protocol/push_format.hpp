// push_format.hpp -- the bytes of a push in a ring, and the layout of a ps's board.
//
// Each pusher has one ring in each ps. The pusher writes entries, then stores their end as `tail` on the
// board. Entries beyond the tail do not exist, so a pusher that dies while writing leaves no partial entry.
// The ps applies entries in order and stores its position as `applied`. Both positions count bytes since
// the ring was opened and never wrap. An entry is at (position % ring size) and contiguous.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capstan::protocol {

class DevicePushSink;

inline constexpr std::uint64_t kCacheLine = 64;

enum class PushKind : std::uint32_t {
  padding = 1,  // skip to the start of the ring
  sparse = 2,   // row numbers, then one gradient row for each
  dense = 3,    // gradient of consecutive rows
  step = 4,     // the pusher completes step `first_row` of update group `variable`, or leaves it (kLeave)
  count = 5,    // adds `first_row` to counter `variable` of the board
  learning_rate = 6,  // sets the learning rate of a shard to `first_row`, the bits of a double
  keyed = 7,          // keys of a dynamic table, then one row for each; none for RowOp::insert and erase
};

/// Returns true if entries of this kind change rows of a shard.
constexpr bool changes_rows(PushKind kind) noexcept {
  return kind == PushKind::sparse || kind == PushKind::dense || kind == PushKind::keyed;
}

/// Value of `applied` for a fenced pusher: it counts as dead, and none of its further entries is applied.
inline constexpr std::uint64_t kFenced = ~std::uint64_t{0};

/// Closures with numbers from here on run on one particular worker only.
inline constexpr std::uint64_t kForOneWorker = std::uint64_t{1} << 63;

/// Step number with which a pusher leaves an update group.
inline constexpr std::uint64_t kLeave = ~std::uint64_t{0};

/// Operation of an entry on a row w, with the entry's row x. All but `gradient` bypass the optimizer and
/// its slots, and are applied row by row in the given order.
enum class RowOp : std::uint32_t {
  gradient = 0,  // the optimizer's rule
  set = 1,       // w = x
  add = 2,       // w += x
  sub = 3,       // w -= x
  mul = 4,       // w *= x
  div = 5,       // w /= x; integers round toward zero
  min = 6,       // w = min(w, x)
  max = 7,       // w = max(w, x)
  insert = 8,    // tables only: adds the key with its initial row, unless it exists
  erase = 9,     // tables only: removes the key
};
/// Returns true if an entry with this operation has values.
constexpr bool has_values(RowOp op) noexcept { return op != RowOp::insert && op != RowOp::erase; }

/// Header of every entry. It is followed by `rows` 32-bit row numbers within the shard (sparse only), or by
/// `rows` 64-bit keys (keyed only), then by the values; each part is padded to 64 bytes.
struct alignas(kCacheLine) PushHeader {
  PushKind kind = PushKind::padding;
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  std::uint32_t rows = 0;
  std::uint64_t bytes = 0;      // of the complete entry, a multiple of 64
  std::uint64_t first_row = 0;  // within the shard (dense only)
  std::uint64_t closure = 0;    // number of the closure that pushes; 0 outside of closures
  // Number of previous pushes of the replica in this run of the closure, to any ps. Outside of closures:
  // pushes of the process so far, with this one.
  std::uint32_t call = 0;
  std::uint32_t rank = 0;  // of the pusher
  RowOp op = RowOp::gradient;
  std::uint8_t first_part = 1;         // 0: continues a push, which counts as one update
  std::uint8_t last_part = 1;          // 0: a later entry continues the push
  std::uint8_t acknowledge = 0;        // 1: requests kPushApplied; pushes by message only
  std::uint8_t again = 0;              // 1: a dead worker has started the closure before
  std::uint8_t in_staging_buffer = 0;  // 1: a BufferSlot replaces the values
  std::uint8_t bfloat16_values = 0;    // 1: the values are bfloat16, of a variable of float32
  std::uint16_t replica = 0;           // index of the pushing replica within its worker
  std::uint32_t part = 0;              // number of previous entries of the same push to this ps
};
static_assert(sizeof(PushHeader) == kCacheLine);

/// Location of an entry's values in a staging buffer on the ps's GPU, written by kernels of the pusher.
struct alignas(kCacheLine) BufferSlot {
  std::uint32_t number = 0;  // StagingBufferKey::number
  std::uint32_t reserved = 0;
  std::uint64_t at = 0;  // byte offset in the buffer
};
static_assert(sizeof(BufferSlot) == kCacheLine);

constexpr std::uint64_t round_up(std::uint64_t bytes) noexcept {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

/// Returns the number of 32-bit words that an entry's row numbers or keys take.
constexpr std::uint64_t number_words(PushKind kind, std::uint64_t rows) noexcept {
  if (kind == PushKind::keyed) return 2 * rows;
  return kind == PushKind::sparse ? rows : 0;
}
/// Returns the padded bytes of an entry's row numbers or keys.
constexpr std::uint64_t number_bytes(PushKind kind, std::uint64_t rows) noexcept {
  return round_up(number_words(kind, rows) * sizeof(std::uint32_t));
}
/// The keys of a keyed entry. `words`: as PushSink::apply takes them, aligned to 8 bytes.
inline std::span<const std::int64_t> keys_of(std::span<const std::uint32_t> words) noexcept {
  return {reinterpret_cast<const std::int64_t*>(words.data()), words.size() / 2};
}

/// Returns the size of the largest entry for a ring: that of one row, so that the ring takes a second entry
/// while the ps applies the first. An entry with several rows takes at most a quarter of the ring.
constexpr std::uint64_t largest_entry(std::uint64_t ring_bytes) noexcept { return ring_bytes / 2; }

/// Bytes of an entry of `rows` rows.
constexpr std::uint64_t entry_bytes(PushKind kind, std::uint64_t rows, std::uint64_t row_bytes) noexcept {
  return sizeof(PushHeader) + number_bytes(kind, rows) + round_up(rows * row_bytes);
}
/// Bytes of an entry whose values are in a staging buffer.
constexpr std::uint64_t entry_bytes_in_staging_buffer(PushKind kind, std::uint64_t rows) noexcept {
  return sizeof(PushHeader) + number_bytes(kind, rows) + sizeof(BufferSlot);
}

/// Offsets of the words on a ps's board; each has its own cache line.
class BoardLayout {
 public:
  static constexpr std::uint64_t kCounters = 64;  // counters for fetch-add
  static constexpr std::uint64_t kGroups = 32;    // update groups

  explicit BoardLayout(std::uint64_t ranks) noexcept : ranks_(ranks) {}
  /// 1 while the ps sleeps and needs a doorbell.
  std::uint64_t asleep() const noexcept { return 0; }
  /// The transport::LivenessWord of the ps.
  std::uint64_t liveness_word() const noexcept { return kCacheLine; }
  std::uint64_t tail(std::uint64_t rank) const noexcept { return (2 + rank) * kCacheLine; }
  std::uint64_t applied(std::uint64_t rank) const noexcept { return (2 + ranks_ + rank) * kCacheLine; }
  std::uint64_t counter(std::uint64_t index) const noexcept { return (2 + 2 * ranks_ + index) * kCacheLine; }
  /// Steps that all members of update group `id` (from 1 on) have completed.
  std::uint64_t group(std::uint64_t id) const noexcept { return counter(kCounters + id - 1); }
  std::uint64_t bytes() const noexcept { return counter(kCounters + kGroups); }

 private:
  std::uint64_t ranks_;
};

/// Applies the entries of pushes. Implemented by the store; clients of an embedded cluster call it
/// directly, without a ring. Thread-safe.
class PushSink {
 public:
  virtual ~PushSink() = default;
  /// Applies an entry. `rows` is empty for a dense push, and has the words of the keys for a keyed push. The
  /// caller may reuse both buffers on return, even if the entry is applied asynchronously.
  virtual void apply(const PushHeader& header, std::span<const std::uint32_t> rows,
                     const std::byte* values) = 0;
  /// Returns false if this entry would start a push while a consistent reader waits for the shard.
  virtual bool ready(const PushHeader& header) = 0;
  /// Ends a push to the shard whose remaining entries will never arrive.
  virtual void abandon(std::uint32_t variable, std::uint32_t shard) = 0;
  /// Returns true while entries are being applied asynchronously.
  virtual bool unsettled() const noexcept { return false; }
  /// Blocks until every entry has been applied.
  virtual void settle() {}
  /// Returns the sink for pushes from GPU memory, or null if such pushes are not accepted.
  virtual DevicePushSink* device() noexcept { return nullptr; }
};

/// Returns true if `rest`, the bytes after the header, has the size that the header implies.
inline bool is_complete(const PushHeader& header, std::span<const std::byte> rest) noexcept {
  return header.bytes == sizeof header + rest.size() && number_bytes(header.kind, header.rows) <= rest.size();
}

/// Passes a complete entry to `sink`. REQUIRES: `rest` is aligned to 8 bytes.
inline void apply_entry(const PushHeader& header, const std::byte* rest, PushSink& sink) {
  sink.apply(header, {reinterpret_cast<const std::uint32_t*>(rest), number_words(header.kind, header.rows)},
             rest + number_bytes(header.kind, header.rows));
}

/// The push that a pusher has started but not completed, if any.
class UnfinishedPush {
 public:
  void note(const PushHeader& header, PushSink& sink) {
    if (header.first_part != 0) abandon(sink);  // the pusher has abandoned the previous push
    open_ = header.last_part == 0;
    variable_ = header.variable;
    shard_ = header.shard;
  }
  void set(std::uint32_t variable, std::uint32_t shard) {
    open_ = true;
    variable_ = variable;
    shard_ = shard;
  }
  bool open() const noexcept { return open_; }
  std::uint32_t variable() const noexcept { return variable_; }
  std::uint32_t shard() const noexcept { return shard_; }
  void abandon(PushSink& sink) {
    if (open_) sink.abandon(variable_, shard_);
    open_ = false;
  }

 private:
  bool open_ = false;
  std::uint32_t variable_ = 0;
  std::uint32_t shard_ = 0;
};

}  // namespace capstan::protocol

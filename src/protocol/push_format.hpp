// push_format.hpp -- the bytes of a push in a ring, and of the board on which both ends say how far they are.
//
// A ring belongs to one pusher in one ps. The pusher writes entries, then stores their end as its `tail` on
// the board; an entry beyond the tail does not exist, so a pusher that dies while writing leaves nothing
// behind. The ps applies entries in order and stores how far it has come as `applied`. Both count bytes since
// the ring was opened and never wrap; an entry lies at (count % ring size) and is contiguous.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capstan::protocol {

class DevicePushSink;

inline constexpr std::uint64_t kCacheLine = 64;

enum class PushKind : std::uint32_t {
  padding = 1,  // skips to the ring's start
  sparse = 2,   // row numbers, then one row of gradient for each
  dense = 3,    // gradient of consecutive rows
  step = 4,     // the pusher ends a step of update group `variable`; `first_row` is its number, or kLeave
  count = 5,    // adds `first_row` to counter `variable` of the board
  learning_rate = 6,  // sets that of a shard to `first_row`, the bits of a double
};

/// Returns whether entries of this kind change rows of a shard.
constexpr bool changes_rows(PushKind kind) noexcept {
  return kind == PushKind::sparse || kind == PushKind::dense;
}

/// In place of how far the ps has come: the pusher counts as dead, and nothing of it is applied any more.
inline constexpr std::uint64_t kFenced = ~std::uint64_t{0};

/// Numbers of closures from here on are of those for one worker alone, which never run elsewhere.
inline constexpr std::uint64_t kForOneWorker = std::uint64_t{1} << 63;

/// In place of a step's number: the pusher takes no further part.
inline constexpr std::uint64_t kLeave = ~std::uint64_t{0};

/// What an entry does to the rows that it names; x is what it brings for a row. All but `gradient` leave the
/// optimizer and its slots alone, and are applied row by row in the order given.
enum class RowOp : std::uint32_t {
  gradient = 0,  // the optimizer's rule
  set = 1,       // w = x
  add = 2,       // w += x
  sub = 3,       // w -= x
  mul = 4,       // w *= x
  div = 5,       // w /= x, of integers towards zero
  min = 6,       // w = min(w, x)
  max = 7,       // w = max(w, x)
};

/// Starts every entry. Followed, each part rounded up to 64 bytes, by `rows` 32-bit row numbers within the
/// shard (sparse only), then by the values.
struct alignas(kCacheLine) PushHeader {
  PushKind kind = PushKind::padding;
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  std::uint32_t rows = 0;
  std::uint64_t bytes = 0;      // of the whole entry, a multiple of 64
  std::uint64_t first_row = 0;  // within the shard (dense only)
  std::uint64_t closure = 0;    // that pushes, by the coordinator's number; 0 outside of closures
  std::uint32_t call = 0;       // how many pushes its replica had made in this run, to whichever ps
  std::uint32_t rank = 0;       // of the pusher
  RowOp op = RowOp::gradient;
  std::uint8_t first_part = 1;         // 0 when an earlier entry began the same push: it counts as one update
  std::uint8_t last_part = 1;          // 0 when a later entry goes on with the same push
  std::uint8_t acknowledge = 0;        // of a push by message: say how far you are (kPushApplied)
  std::uint8_t again = 0;              // the closure was begun before, by a worker that has died
  std::uint8_t in_staging_buffer = 0;  // 1: a BufferSlot follows in place of the values
  std::uint16_t replica = 0;           // of the closure's function
  std::uint32_t part = 0;              // how many entries of the call went to this ps before
};
static_assert(sizeof(PushHeader) == kCacheLine);

/// Where the values of an entry are that a pusher's kernels have put into the memory of the ps's GPU.
struct alignas(kCacheLine) BufferSlot {
  std::uint32_t room = 0;  // as kOpenStagingBuffer has answered
  std::uint32_t reserved = 0;
  std::uint64_t at = 0;  // bytes from its beginning
};
static_assert(sizeof(BufferSlot) == kCacheLine);

constexpr std::uint64_t round_up(std::uint64_t bytes) noexcept {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

/// Bytes of the row numbers of an entry.
constexpr std::uint64_t number_bytes(PushKind kind, std::uint64_t rows) noexcept {
  return kind == PushKind::sparse ? round_up(rows * sizeof(std::uint32_t)) : 0;
}

/// Bytes of an entry of `rows` rows.
constexpr std::uint64_t entry_bytes(PushKind kind, std::uint64_t rows, std::uint64_t row_bytes) noexcept {
  return sizeof(PushHeader) + number_bytes(kind, rows) + round_up(rows * row_bytes);
}
/// The same of one whose values lie in a room.
constexpr std::uint64_t entry_bytes_in_staging_buffer(PushKind kind, std::uint64_t rows) noexcept {
  return sizeof(PushHeader) + number_bytes(kind, rows) + sizeof(BufferSlot);
}

/// Where things stand on a ps's board, one cache line each.
class BoardLayout {
 public:
  static constexpr std::uint64_t kCounters = 64;  // words for fetch-add
  static constexpr std::uint64_t kGroups = 32;    // update groups

  explicit BoardLayout(std::uint64_t ranks) noexcept : ranks_(ranks) {}
  /// 1 while the ps sleeps and wants a doorbell.
  std::uint64_t asleep() const noexcept { return 0; }
  /// The ps's transport::LifeWord.
  std::uint64_t life_word() const noexcept { return kCacheLine; }
  std::uint64_t tail(std::uint64_t rank) const noexcept { return (2 + rank) * kCacheLine; }
  std::uint64_t applied(std::uint64_t rank) const noexcept { return (2 + ranks_ + rank) * kCacheLine; }
  std::uint64_t counter(std::uint64_t index) const noexcept { return (2 + 2 * ranks_ + index) * kCacheLine; }
  /// Steps that all workers of update group `id`, from 1 on, have ended.
  std::uint64_t group(std::uint64_t id) const noexcept { return counter(kCounters + id - 1); }
  std::uint64_t bytes() const noexcept { return counter(kCounters + kGroups); }

 private:
  std::uint64_t ranks_;
};

/// Applies the entries of pushes: the store, which clients of an embedded cluster call without a ring.
/// Thread-safe.
class PushSink {
 public:
  virtual ~PushSink() = default;
  /// Applies an entry; `rows` is empty for a dense push. Both may be reused on return, even if the entry is
  /// still being applied asynchronously.
  virtual void apply(const PushHeader& header, std::span<const std::uint32_t> rows,
                     const std::byte* values) = 0;
  /// Returns false while a reader waits for the shard to be consistent and this entry would begin a push.
  virtual bool ready(const PushHeader& header) = 0;
  /// Ends a push to the shard whose remaining entries will never arrive.
  virtual void abandon(std::uint32_t variable, std::uint32_t shard) = 0;
  /// Returns true while entries are being applied asynchronously.
  virtual bool unsettled() const noexcept { return false; }
  /// Blocks until every entry has been applied.
  virtual void settle() {}
  /// Returns where pushes from the memory of a GPU go, or null if this sink accepts none.
  virtual DevicePushSink* device() noexcept { return nullptr; }
};

/// Whether `rest`, all that came behind the header, is what the header says.
inline bool is_complete(const PushHeader& header, std::span<const std::byte> rest) noexcept {
  return header.bytes == sizeof header + rest.size() && number_bytes(header.kind, header.rows) <= rest.size();
}

/// Hands a whole entry to `sink`. `rest` is aligned to 8 bytes.
inline void apply_entry(const PushHeader& header, const std::byte* rest, PushSink& sink) {
  const std::uint64_t numbers = number_bytes(header.kind, header.rows);
  sink.apply(header, {reinterpret_cast<const std::uint32_t*>(rest), numbers != 0 ? header.rows : 0U},
             rest + numbers);
}

/// The push that a pusher has begun and not ended, if any.
class UnfinishedPush {
 public:
  void note(const PushHeader& header, PushSink& sink) {
    if (header.first_part != 0) abandon(sink);  // the pusher gave up, and goes on with something else
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

// journal.hpp -- undo log of one push entry: a restarted process undoes an entry that was not committed.
//
// After a kill, memory holds all stores up to that point in program order, so the log needs ordered stores
// but no flushes. Power failures are not covered. An entry is applied in groups of rows: the old contents of
// a group are appended to the log, then the group is updated while it is in the caches. Several threads may
// apply parts of one entry that have no row in common. Each appends to a list of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/push_format.hpp"

namespace capstan::ps {

class Journal {
 public:
  /// Maximum number of rows per group, and of bytes per group in one array.
  static constexpr std::uint64_t kGroupRows = 64;
  static constexpr std::uint64_t kGroupBytes = 8192;
  static constexpr std::size_t kArrays = 5;  // values, two slots; keys and states of a table
  /// Maximum number of lists of groups per entry.
  static constexpr std::size_t kLists = 16;

  /// The latest entry. It is committed once its pusher's position on the board has passed `position`.
  struct Entry {
    std::uint64_t number = 0;  // counts from 1; 0: none
    protocol::PushHeader header;
    std::uint64_t position = 0;
    std::int64_t steps = 0;     // update steps of the shard before the entry
    std::uint64_t entered = 0;  // ClosureLedger::entered before the entry
    std::uint64_t logged = 0;   // bytes of all groups
  };

  /// Rows that a group changes: in array a, which begins at `bases[a]`, `count` rows of `bytes[a]` bytes
  /// each. Row r is at `offsets[a]` + r * `bytes[a]`.
  struct Group {
    std::byte* bases[kArrays] = {};  // null: no further array
    std::uint64_t offsets[kArrays] = {};
    std::uint64_t bytes[kArrays] = {};
    const std::uint32_t* rows = nullptr;  // null: one row, number 0
    std::uint64_t count = 1;
  };

  /// Size of a journal for entries of at most `entry_bytes`.
  static std::uint64_t bytes_for(std::uint64_t entry_bytes) noexcept;

  Journal() = default;
  /// REQUIRES: `at` is persistent memory, aligned to a cache line and zeroed before the first process uses
  /// it.
  Journal(std::byte* at, std::uint64_t bytes) : page_(reinterpret_cast<Page*>(at)), bytes_(bytes) {}

  /// Begins an entry and discards the log of the previous one. REQUIRES: the previous entry is committed.
  void begin(const protocol::PushHeader& header, std::uint64_t position, std::int64_t steps,
             std::uint64_t entered) noexcept;
  /// Logs the rows of a group before they change. Threads may log to different lists at the same time.
  /// Throws Error(internal) if the entry exceeds the journal. REQUIRES: list < kLists; no list of the entry
  /// has a row of an array that another one has.
  void log(const Group& group, std::size_t list = 0);
  /// Returns the latest entry, or one with number 0 if there is none.
  Entry last() const noexcept;
  /// Discards the entry: `last` returns none until the next `begin`.
  void retire() noexcept;
  /// Restores the rows that the entry changed; `bases` are the arrays of its shard. Idempotent, so it can be
  /// repeated after a kill.
  void undo(std::byte* const (&bases)[kArrays]) const noexcept;

 private:
  static constexpr std::uint64_t kNoGroup = ~std::uint64_t{0};
  struct LoggedGroup {
    std::uint64_t before;  // offset of the previous group of the list, or kNoGroup
    std::uint64_t offsets[kArrays];
    std::uint64_t bytes[kArrays];  // 0: the array does not change
    std::uint64_t count;
    std::uint32_t rows[kGroupRows];
    // followed by `count` rows of each array that changes
  };
  struct alignas(protocol::kCacheLine) List {
    std::uint64_t entry;  // number of the entry to which the list belongs; it is empty in any other
    std::uint64_t last;   // offset of the last group
  };
  struct Page {
    std::uint64_t valid;
    Entry entry;
    List lists[kLists];
  };

  void undo_list(const List& list, std::byte* const (&bases)[kArrays]) const noexcept;

  Page* page_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace capstan::ps

// journal.hpp -- undo log of one push entry: the next process undoes an entry that this one did not commit.
//
// A kill leaves memory as the stores before it have made it, in program order; power failures are not
// covered. So the log needs ordered stores and no flushes. An entry is applied in groups of rows: the old
// contents of a group are appended to the log, then the group is applied while it is in the caches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/push_format.hpp"

namespace capstan::ps {

class Journal {
 public:
  /// Most rows of a group, and most bytes of it in any one array.
  static constexpr std::uint64_t kGroupRows = 64;
  static constexpr std::uint64_t kGroupBytes = 8192;
  static constexpr std::size_t kArrays = 3;  // values and two slots

  /// The entry that was begun last. It is committed once its pusher's position on the board has passed
  /// `position`.
  struct Entry {
    std::uint64_t number = 0;  // from 1; 0: none
    protocol::PushHeader header;
    std::uint64_t position = 0;
    std::int64_t steps = 0;     // of the shard, before the entry
    std::uint64_t entered = 0;  // entries of its closure before it
    std::uint64_t logged = 0;   // bytes of groups
    std::uint64_t last = 0;     // offset of the last group
  };

  /// Rows that a group changes: `count` rows of `bytes[a]` in array a, which begins at `bases[a]`; row r is
  /// at `offsets[a]` + r * `bytes[a]`.
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
  /// REQUIRES: persistent memory, zeroed before the first process, aligned to a cache line.
  Journal(std::byte* at, std::uint64_t bytes) : page_(reinterpret_cast<Page*>(at)), bytes_(bytes) {}

  /// Begins an entry; the one before is committed.
  void begin(const protocol::PushHeader& header, std::uint64_t position, std::int64_t steps,
             std::uint64_t entered) noexcept;
  /// Logs a group that is about to change. Throws Error(internal) if the entry is larger than the journal
  /// allows.
  void log(const Group& group);
  /// Returns the entry begun last.
  Entry last() const noexcept;
  /// Forgets the entry: `last` returns none until the next `begin`.
  void retire() noexcept;
  /// Restores the rows that the entry changed, in the arrays of its shard at `bases`. Idempotent, so it may
  /// be interrupted and repeated.
  void undo(std::byte* const (&bases)[kArrays]) const noexcept;

 private:
  struct LoggedGroup {
    std::uint64_t before;  // offset of the group before this one
    std::uint64_t offsets[kArrays];
    std::uint64_t bytes[kArrays];  // 0: the array does not change
    std::uint64_t count;
    std::uint32_t rows[kGroupRows];
    // then, for each array, `count` rows
  };
  struct Page {
    std::uint64_t valid;
    Entry entry;
  };

  Page* page_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace capstan::ps

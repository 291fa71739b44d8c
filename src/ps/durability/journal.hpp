// journal.hpp -- what an entry of a push has changed, so that the process that takes over can undo an entry
// that its predecessor did not end, and apply it anew.
//
// A kill leaves memory as the stores before it have made it, in program order; no power fails. So a journal
// needs order and no flushes. An entry is applied in groups of rows: what a group is about to change is
// copied behind what the groups before it have changed, then the group is applied while all of it is in the
// caches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/push_format.hpp"

namespace capstan::ps {

class Journal {
 public:
  /// A group has no more rows, and no more bytes in any one array.
  static constexpr std::uint64_t kGroupRows = 64;
  static constexpr std::uint64_t kGroupBytes = 8192;
  static constexpr std::size_t kArrays = 3;  // values and two slots

  /// The entry that was begun last. Whether it was ended is to be seen from how far its pusher's entries have
  /// been applied: `position` is how far that was when this one began.
  struct Entry {
    std::uint64_t number = 0;  // from 1; 0: none was ever begun
    protocol::PushHeader header;
    std::uint64_t position = 0;
    std::int64_t steps = 0;     // of the shard, before
    std::uint64_t entered = 0;  // of its closure, before
    std::uint64_t kept = 0;     // bytes of groups
    std::uint64_t last = 0;     // where the last of them begins
  };

  /// What a group changes: `count` rows of `bytes[a]` in array a, which begins at `bases[a]`; row r lies at
  /// `offsets[a]` + r * `bytes[a]`.
  struct Group {
    std::byte* bases[kArrays] = {};  // null from the first that there is not
    std::uint64_t offsets[kArrays] = {};
    std::uint64_t bytes[kArrays] = {};
    const std::uint32_t* rows = nullptr;  // null: one row, number 0
    std::uint64_t count = 1;
  };

  /// Bytes of a journal for entries of at most `entry_bytes`.
  static std::uint64_t bytes_for(std::uint64_t entry_bytes) noexcept;

  Journal() = default;
  /// In kept memory, zeroed before its first life.
  Journal(std::byte* at, std::uint64_t bytes) : page_(reinterpret_cast<Page*>(at)), bytes_(bytes) {}

  /// Retires the entry before.
  void begin(const protocol::PushHeader& header, std::uint64_t position, std::int64_t steps,
             std::uint64_t entered) noexcept;
  /// Before the group changes. Throws Error(internal) where the entry is larger than the journal was made
  /// for.
  void keep(const Group& group);
  /// The entry begun last.
  Entry last() const noexcept;
  /// There is nothing to undo any more: `last` returns no entry until the next `begin`.
  void retire() noexcept;
  /// Of its shard, whose arrays now begin at `bases`; may be cut off, and done again.
  void undo(std::byte* const (&bases)[kArrays]) const noexcept;

 private:
  struct Kept {
    std::uint64_t before;  // where the group before this one begins
    std::uint64_t offsets[kArrays];
    std::uint64_t bytes[kArrays];  // 0: nothing of this array
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

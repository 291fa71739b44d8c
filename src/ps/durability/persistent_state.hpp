// persistent_state.hpp -- state of a ps that outlives its process, and the manifest that describes it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cluster/membership/member.hpp"
#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"
#include "ps/durability/journal.hpp"
#include "ps/ingest/closure_ledger.hpp"
#include "transport/fabric.hpp"
#include "transport/memory/persistent_memory.hpp"

namespace capstan::ps {

/// Location of a piece in the heap.
struct PieceLocation {
  std::uint64_t region = 0;
  std::uint64_t offset = 0;
};

/// Description of a shard, and the locations of its values, its words and its slots, in this order.
struct ShardRecord {
  protocol::CreateShard description;
  std::vector<PieceLocation> pieces;
};

/// The ps whose role a spare has assumed.
struct AssumedRole {
  std::int32_t rank = 0;
  std::int32_t index = 0;
  std::uint32_t incarnation = 0;  // of the ps: protocol::FailoverRequest::incarnation
  std::uint32_t reserved = 0;
};

/// The manifest is an append-only list of events. After a kill, memory holds all stores up to that point in
/// program order, so a record is either complete or absent. Used by the ps's thread only.
class PersistentState {
 public:
  /// Type of a record; comments give its contents. Stored: never renumber.
  enum class Record : std::uint32_t {
    region = 1,     // two words: offset in the file, bytes
    shard,          // ShardRecord
    ring,           // four words: rank, region, offset, bytes
    ring_closed,    // one word: rank, which is fenced
    ring_released,  // one word: rank, whose process no longer writes to the ring
    dead,           // one word: rank
    member,         // cluster::Member
    group,          // protocol::CreateGroup
    dropped,        // one word: number of a variable whose shards were removed
    assumed_role,   // AssumedRole: a spare has become a ps; only the last record counts
    coordinator,    // cluster::Member of a restarted coordinator
    reserved,       // two words, as for `region`; pages of this region are allocated on first use
  };
  struct Item {
    Record record;
    transport::Bytes bytes;
  };

  /// `ranks`: maximum number of ranks in the lifetime of the job; `entry_bytes`: size of the largest push
  /// entry; `ledger`: capacity of the closure ledger. Throws Error(resource_exhausted).
  PersistentState(std::shared_ptr<transport::PersistentMemory> memory, transport::Fabric& fabric,
                  std::uint64_t ranks, std::uint64_t entry_bytes, const ClosureLedger::Capacity& ledger = {});

  /// Returns true if a previous process has used the memory.
  bool has_predecessor() const noexcept { return has_predecessor_; }
  /// Returns the records of the manifest in order; they point into persistent memory.
  std::vector<Item> items() const;
  /// Returns the role that the previous process had assumed, if it was a spare that had become a ps and had
  /// restored all its shards.
  std::optional<AssumedRole> assumed_role() const;

  void append(Record record, transport::Bytes bytes);
  void append_words(Record record, std::initializer_list<std::uint64_t> words);

  /// Maps the board, which is at the same offset for every process.
  std::unique_ptr<transport::Region> board(std::uint64_t bytes);
  /// Allocates a zeroed region and records it. Throws Error(resource_exhausted).
  std::unique_ptr<transport::Region> allocate(std::uint64_t bytes);
  /// Reserves a zeroed region, which has no memory yet, and records it. Throws Error(resource_exhausted).
  std::unique_ptr<transport::Region> reserve(std::uint64_t bytes);
  /// A position in the manifest and the regions.
  struct Mark {
    std::uint64_t manifest_bytes = 0;
    std::uint64_t regions_end = 0;
    bool operator==(const Mark&) const = default;
  };
  Mark mark() const noexcept { return {head_->manifest_bytes, next_region_}; }
  /// Removes the records and regions after the mark and frees their memory. REQUIRES: nothing uses them.
  void roll_back(const Mark& mark) noexcept;
  /// Maps a region of the previous process.
  std::unique_ptr<transport::Region> adopt(std::uint64_t offset, std::uint64_t bytes);
  std::unique_ptr<transport::Region> adopt_reserved(std::uint64_t offset, std::uint64_t bytes);

  /// Memory of the ClosureLedger.
  std::span<std::byte> ledger() const noexcept { return ledger_; }

  Journal& journal() noexcept { return journal_; }
  /// Begins an entry: records its pusher's position, and the push that is unfinished once the entry is
  /// applied. `steps` and `entered`: see Journal::Entry.
  void begin(const protocol::PushHeader& header, std::int64_t steps, std::uint64_t entered) noexcept;
  /// Returns the position of a rank on the board: the number of bytes of its entries that have been applied.
  std::uint64_t applied(std::uint64_t rank) const noexcept;
  void set_applied(std::uint64_t rank, std::uint64_t bytes) const noexcept;
  /// Resets the position of a rank whose process was replaced. REQUIRES: all entries of the old process have
  /// been applied.
  void reset(std::uint64_t rank) noexcept;
  /// Returns the entry that the previous process began and did not commit, if any.
  std::optional<Journal::Entry> uncommitted_entry() const noexcept;
  /// Returns the rank's push of which only some entries have been applied; none for a fenced rank.
  protocol::UnfinishedPush unfinished(std::uint64_t rank) const noexcept;
  /// Returns the unfinished pushes of all ranks, by rank.
  std::map<int, protocol::UnfinishedPush> unfinished_pushes() const;

 private:
  std::span<std::byte> map_region(std::uint64_t offset, std::uint64_t bytes);

  struct Head {
    std::uint64_t used;            // 0: no process has used the memory
    std::uint64_t manifest_bytes;  // bytes of complete records
  };
  /// Whether a push of a rank is unfinished once `applied` bytes of its entries have been applied.
  struct PartialPush {
    std::uint64_t applied;
    std::uint32_t variable;
    std::uint32_t shard;
    std::uint64_t open;
  };
  /// The two records of one rank: for the entry in progress, and for the previous entry.
  struct PartialPushes {
    PartialPush of[2];
  };

  std::shared_ptr<transport::PersistentMemory> memory_;
  transport::Fabric& fabric_;
  Head* head_ = nullptr;
  std::byte* manifest_ = nullptr;
  std::span<std::byte> ledger_;
  std::span<PartialPushes> partial_;  // by rank
  protocol::BoardLayout layout_;
  std::byte* board_ = nullptr;
  std::uint64_t board_at_ = 0;
  std::uint64_t next_region_ = 0;
  std::map<std::uint64_t, std::span<std::byte>> regions_;  // by offset in the file
  bool has_predecessor_ = false;
  Journal journal_;
};

}  // namespace capstan::ps

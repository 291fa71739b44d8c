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

/// Location of a piece of the heap.
struct PieceLocation {
  std::uint64_t region = 0;
  std::uint64_t offset = 0;
};

/// A shard: its description, and the locations of its values, its words and its slots, in this order.
struct ShardRecord {
  protocol::CreateShard description;
  std::vector<PieceLocation> pieces;
};

/// The ps that a spare has become.
struct AssumedRole {
  std::int32_t rank = 0;
  std::int32_t index = 0;
  std::uint32_t incarnation = 0;  // of the ps: protocol::FailoverRequest::life
  std::uint32_t reserved = 0;
};

/// The manifest is an append-only list of events. A kill leaves memory as the stores before it have made it,
/// in program order, so a record is either complete or absent. Used by the thread of the ps.
class PersistentState {
 public:
  /// Type of a record, and its contents. Stored: never renumber.
  enum class Record : std::uint32_t {
    region = 1,     // two words: offset in the file, bytes
    shard,          // ShardRecord
    ring,           // four words: rank, region, offset, bytes
    ring_closed,    // rank, which is fenced
    ring_released,  // rank, whose process no longer writes to it
    dead,           // rank
    member,         // cluster::Member
    group,          // protocol::CreateGroup
    dropped,        // variable, by number, whose shards were removed
    assumed_role,   // AssumedRole: a spare has become a ps; the last one is valid
    coordinator,    // cluster::Member of a restarted coordinator
  };
  struct Item {
    Record record;
    transport::Bytes bytes;
  };

  /// `ranks`: most ranks that the job may ever have; `entry_bytes`: size of the largest entry of a push;
  /// `ledger`: capacity of the ledger of closures. Throws Error(resource_exhausted).
  PersistentState(std::shared_ptr<transport::PersistentMemory> memory, transport::Fabric& fabric,
                  std::uint64_t ranks, std::uint64_t entry_bytes, const ClosureLedger::Capacity& ledger = {});

  /// Returns true if a process before this one has used the memory.
  bool found() const noexcept { return found_; }
  /// The records of the manifest, in order.
  std::vector<Item> items() const;
  /// The role of the process before this one, if it was a spare that had become a ps with all its shards.
  std::optional<AssumedRole> assumed_role() const;

  void append(Record record, transport::Bytes bytes);
  void append_words(Record record, std::initializer_list<std::uint64_t> words);

  /// Maps the board, which every process finds at the same offset.
  std::unique_ptr<transport::Region> board(std::uint64_t bytes);
  /// Allocates a zeroed region and records it. Throws Error(resource_exhausted).
  std::unique_ptr<transport::Region> allocate(std::uint64_t bytes);
  /// A position in the manifest and the regions.
  struct Mark {
    std::uint64_t manifest_bytes = 0;
    std::uint64_t regions_end = 0;
    bool operator==(const Mark&) const = default;
  };
  Mark mark() const noexcept { return {head_->manifest_bytes, next_region_}; }
  /// Removes records and regions after the mark, and frees their memory. REQUIRES: nothing uses them.
  void roll_back(const Mark& mark) noexcept;
  /// Maps a region of the process before this one.
  std::unique_ptr<transport::Region> adopt(std::uint64_t offset, std::uint64_t bytes);

  /// Memory for the ClosureLedger.
  std::span<std::byte> ledger() const noexcept { return ledger_; }

  Journal& journal() noexcept { return journal_; }
  /// Begins an entry: records the position of its pusher, and which push is unfinished once the entry is
  /// applied. `steps` and `entered`: see Journal::Entry.
  void begin(const protocol::PushHeader& header, std::int64_t steps, std::uint64_t entered) noexcept;
  /// Position of a rank on the board: bytes of its entries that have been applied.
  std::uint64_t applied(std::uint64_t rank) const noexcept;
  void set_applied(std::uint64_t rank, std::uint64_t bytes) const noexcept;
  /// Resets the position of a rank whose process was replaced. REQUIRES: all entries of the earlier process
  /// were applied.
  void reset(std::uint64_t rank) noexcept;
  /// Returns the entry that the process before this one had begun and not committed, if any.
  std::optional<Journal::Entry> cut_off() const noexcept;
  /// Returns the push of which only some entries of the rank have been applied. None for a fenced rank.
  protocol::UnfinishedPush unfinished(std::uint64_t rank) const noexcept;
  /// Returns the unfinished pushes of all ranks, by rank. The shards count them.
  std::map<int, protocol::UnfinishedPush> unfinished_pushes() const;

 private:
  struct Head {
    std::uint64_t used;            // 0: never
    std::uint64_t manifest_bytes;  // of complete records
  };
  /// Whether a push of a rank is unfinished once `applied` bytes of its entries have been applied.
  struct PartialPush {
    std::uint64_t applied;
    std::uint32_t variable;
    std::uint32_t shard;
    std::uint64_t open;
  };
  /// Of one rank: that of the entry in progress, and the one before, in turn.
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
  std::map<std::uint64_t, std::span<std::byte>> regions_;  // by their offset in the file
  bool found_ = false;
  Journal journal_;
};

}  // namespace capstan::ps

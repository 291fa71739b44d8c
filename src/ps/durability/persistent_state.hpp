// persistent_state.hpp -- what a ps must find again after its death: kept memory, and where what lies in it.
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

/// A piece of the heap.
struct PiecePlace {
  std::uint64_t region = 0;
  std::uint64_t offset = 0;
};

/// A shard that is there: what was asked for, and its values, version word and slots, in this order.
struct ShardRecord {
  protocol::CreateShard description;
  std::vector<PiecePlace> pieces;
};

/// The ps in whose place a spare is.
struct TakenPlace {
  std::int32_t rank = 0;
  std::int32_t index = 0;
  std::uint32_t life = 0;  // of the ps: protocol::TakeOver
  std::uint32_t reserved = 0;
};

/// The manifest is a list of what has happened, in order; it only grows. A record is written whole or not at
/// all, as far as a process that is killed can tell: the memory is as its stores have left it, in program
/// order.
class PersistentState {
 public:
  /// What a record tells; its bytes.
  enum class Record : std::uint32_t {
    region = 1,     // two words: where it lies in the file, and its bytes
    shard,          // ShardRecord
    ring,           // rank, region, offset, bytes as words
    ring_closed,    // rank: nothing of it counts any more
    ring_released,  // rank: nobody writes into it any more
    gone,           // rank: counts as dead
    member,         // cluster::Member
    group,          // protocol::CreateGroup
    dropped,        // variable, by number: its shards are no more
    place,          // TakenPlace: a spare has become a ps; the last one counts
    coordinator,    // cluster::Member, of one that was started again
  };
  struct Item {
    Record record;
    transport::Bytes bytes;
  };

  /// `places`: ranks that there may ever be; `entry_bytes`: of the largest entry of a push; `ledger`:
  /// capacity of the ledger of closures. Throws Error(resource_exhausted).
  PersistentState(std::shared_ptr<transport::PersistentMemory> memory, transport::Fabric& fabric,
                  std::uint64_t places, std::uint64_t entry_bytes,
                  const ClosureLedger::Capacity& ledger = {});

  /// An earlier process has left something here.
  bool found() const noexcept { return found_; }
  /// What it has left, in order.
  std::vector<Item> items() const;
  /// Nothing when it was no spare, or had not got the shards when it died.
  std::optional<TakenPlace> place() const;

  void append(Record record, transport::Bytes bytes);
  void append_words(Record record, std::initializer_list<std::uint64_t> words);

  /// The board, at the same place in each life.
  std::unique_ptr<transport::Region> board(std::uint64_t bytes);
  /// A further region, zeroed, and noted.
  std::unique_ptr<transport::Region> allocate(std::uint64_t bytes);
  /// How far the manifest and the regions have come.
  struct Mark {
    std::uint64_t manifest_bytes = 0;
    std::uint64_t regions_end = 0;
    bool operator==(const Mark&) const = default;
  };
  Mark mark() const noexcept { return {head_->manifest_bytes, next_region_}; }
  /// What came after is forgotten, and its memory given back. REQUIRES: nobody uses it.
  void back_to(const Mark& mark) noexcept;
  /// One that was noted.
  std::unique_ptr<transport::Region> again(std::uint64_t offset, std::uint64_t bytes);

  /// Memory of the ClosureLedger.
  std::span<std::byte> ledger() const noexcept { return ledger_; }

  Journal& journal() noexcept { return journal_; }
  /// Before an entry is applied: how far its pusher's entries have been, and in the middle of what push they
  /// are when this one has been, too.
  void begin(const protocol::PushHeader& header, std::int64_t steps, std::uint64_t entered) noexcept;
  /// Entries of the rank that have been applied, in bytes; on the board.
  std::uint64_t applied(std::uint64_t rank) const noexcept;
  void set_applied(std::uint64_t rank, std::uint64_t bytes) const noexcept;
  /// The rank is another process, whose entries begin at 0. REQUIRES: all that the earlier one has shown was
  /// applied.
  void begin_anew(std::uint64_t rank) noexcept;
  /// The entry that was cut off, if one was.
  std::optional<Journal::Entry> cut_off() const noexcept;
  /// The push that the rank is in the middle of, after what has been applied. None of a rank that is fenced.
  protocol::UnfinishedPush unfinished(std::uint64_t rank) const noexcept;
  /// Those of all ranks, by rank. The shards count them.
  std::map<int, protocol::UnfinishedPush> unfinished_pushes() const;

 private:
  struct Head {
    std::uint64_t used;            // 0: never
    std::uint64_t manifest_bytes;  // of whole records
  };
  /// The push that a rank is in the middle of when so many bytes have been applied; the two are used in turn.
  struct Middle {
    std::uint64_t applied;
    std::uint32_t variable;
    std::uint32_t shard;
    std::uint64_t open;
  };
  struct UnfinishedUpdates {
    Middle of[2];
  };

  std::shared_ptr<transport::PersistentMemory> memory_;
  transport::Fabric& fabric_;
  Head* head_ = nullptr;
  std::byte* manifest_ = nullptr;
  std::span<std::byte> ledger_;
  std::span<UnfinishedUpdates> middles_;
  protocol::BoardLayout layout_;
  std::byte* board_ = nullptr;
  std::uint64_t board_at_ = 0;
  std::uint64_t next_region_ = 0;
  std::map<std::uint64_t, std::span<std::byte>> regions_;  // by their place in the file
  bool found_ = false;
  Journal journal_;
};

}  // namespace capstan::ps

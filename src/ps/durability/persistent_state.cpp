// persistent_state.cpp -- memory layout: head, journal, ledger, partial pushes, manifest, board, regions.
#include "ps/durability/persistent_state.hpp"

#include <atomic>
#include <cstring>

#include "base/first_touch.hpp"
#include "base/topology.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "transport/bytes.hpp"
#include "transport/memory/reserved_memory.hpp"
#include "transport/memory/word.hpp"

namespace capstan::ps {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
/// Enough for about 100,000 shards, rings and members. Unused pages take no memory.
constexpr std::uint64_t kManifestBytes = std::uint64_t{256} << 20;

constexpr std::uint64_t to_pages(std::uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

struct RecordHead {
  std::uint64_t record;
  std::uint64_t bytes;
};

constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

PersistentState::PersistentState(std::shared_ptr<transport::PersistentMemory> memory,
                                 transport::Fabric& fabric, std::uint64_t ranks, std::uint64_t entry_bytes,
                                 const ClosureLedger::Capacity& ledger)
    : memory_(std::move(memory)), fabric_(fabric), layout_(ranks) {
  const std::uint64_t journal_bytes = Journal::bytes_for(entry_bytes);
  const std::uint64_t journal_at = kPageBytes;
  const std::uint64_t ledger_at = journal_at + to_pages(journal_bytes);
  const std::uint64_t ledger_bytes = ClosureLedger::bytes_for(ranks, ledger);
  const std::uint64_t partial_at = ledger_at + to_pages(ledger_bytes);
  const std::uint64_t manifest_at = partial_at + to_pages(ranks * sizeof(PartialPushes));
  board_at_ = manifest_at + kManifestBytes;
  std::byte* at = memory_->map(transport::PersistentMemory::kFirstOffset, board_at_).data();
  head_ = reinterpret_cast<Head*>(at);
  journal_ = Journal(at + journal_at, journal_bytes);
  partial_ = {reinterpret_cast<PartialPushes*>(at + partial_at), ranks};
  ledger_ = {at + ledger_at, ledger_bytes};
  manifest_ = at + manifest_at;
  board_at_ += transport::PersistentMemory::kFirstOffset;
  has_predecessor_ = head_->used != 0;
  head_->used = 1;
}

std::vector<PersistentState::Item> PersistentState::items() const {
  std::vector<Item> items;
  for (std::uint64_t at = 0; at < head_->manifest_bytes;) {
    RecordHead head;
    std::memcpy(&head, manifest_ + at, sizeof head);
    items.push_back({static_cast<Record>(head.record), {manifest_ + at + sizeof head, head.bytes}});
    at += sizeof head + padded(head.bytes);
  }
  return items;
}

std::optional<AssumedRole> PersistentState::assumed_role() const {
  std::optional<AssumedRole> role;
  for (const Item& item : items()) {
    if (item.record == Record::assumed_role) role = from_bytes<AssumedRole>(item.bytes);
  }
  return role;
}

void PersistentState::append(Record record, transport::Bytes bytes) {
  const std::uint64_t at = head_->manifest_bytes;
  const RecordHead head{static_cast<std::uint64_t>(record), bytes.size()};
  if (sizeof head + padded(bytes.size()) > kManifestBytes - at) {
    throw Error(Code::resource_exhausted,
                "cannot record a shard, push ring or member: the manifest of this ps is full (" +
                    std::to_string(kManifestBytes >> 20) + " MiB)");
  }
  std::memcpy(manifest_ + at, &head, sizeof head);
  if (!bytes.empty()) std::memcpy(manifest_ + at + sizeof head, bytes.data(), bytes.size());
  std::atomic_signal_fence(std::memory_order_seq_cst);
  head_->manifest_bytes = at + sizeof head + padded(bytes.size());
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void PersistentState::append_words(Record record, std::initializer_list<std::uint64_t> words) {
  append(record, std::as_bytes(std::span(words.begin(), words.size())));
}

std::unique_ptr<transport::Region> PersistentState::board(std::uint64_t bytes) {
  next_region_ = board_at_ + to_pages(bytes);
  const std::span<std::byte> memory = memory_->map(board_at_, bytes);
  board_ = memory.data();
  return fabric_.adopt(memory, memory_->location(board_at_));
}

std::uint64_t PersistentState::applied(std::uint64_t rank) const noexcept {
  if (rank >= partial_.size()) return 0;
  return transport::word_at(board_ + layout_.applied(rank)).load(std::memory_order_relaxed);
}

void PersistentState::set_applied(std::uint64_t rank, std::uint64_t bytes) const noexcept {
  if (rank >= partial_.size()) return;
  transport::word_at(board_ + layout_.applied(rank)).store(bytes, std::memory_order_release);
}

void PersistentState::reset(std::uint64_t rank) noexcept {
  if (rank >= partial_.size()) return;
  // Without this, a committed entry of the old process that began at position 0 would look uncommitted.
  if (journal_.last().header.rank == rank) journal_.retire();
  partial_[rank] = {};
  std::atomic_signal_fence(std::memory_order_seq_cst);
  set_applied(rank, 0);
}

void PersistentState::begin(const protocol::PushHeader& header, std::int64_t steps,
                            std::uint64_t entered) noexcept {
  if (header.rank >= partial_.size()) return;
  const std::uint64_t position = applied(header.rank);
  journal_.begin(header, position, steps, entered);
  PartialPush(&of)[2] = partial_[header.rank].of;
  // Overwrites the record beyond `position`, if any: a process that was killed made it for this same entry.
  // Otherwise overwrites the older record.
  const bool first =
      of[0].applied > position || (of[1].applied <= position && of[0].applied <= of[1].applied);
  of[first ? 0 : 1] = {position + header.bytes, header.variable, header.shard,
                       header.last_part == 0 ? 1U : 0U};
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

std::optional<Journal::Entry> PersistentState::uncommitted_entry() const noexcept {
  const Journal::Entry entry = journal_.last();
  if (entry.number == 0 || applied(entry.header.rank) != entry.position) return std::nullopt;
  return entry;
}

protocol::UnfinishedPush PersistentState::unfinished(std::uint64_t rank) const noexcept {
  const std::uint64_t now = applied(rank);
  if (now == protocol::kFenced) return {};
  const PartialPush* latest = nullptr;
  for (const PartialPush& partial : partial_[rank].of) {
    if (partial.applied <= now && (latest == nullptr || partial.applied > latest->applied)) latest = &partial;
  }
  protocol::UnfinishedPush push;
  if (latest != nullptr && latest->open != 0) push.set(latest->variable, latest->shard);
  return push;
}

std::map<int, protocol::UnfinishedPush> PersistentState::unfinished_pushes() const {
  std::map<int, protocol::UnfinishedPush> pushes;
  for (std::uint64_t rank = 0; rank < partial_.size(); ++rank) {
    if (const auto push = unfinished(rank); push.open()) pushes.emplace(static_cast<int>(rank), push);
  }
  return pushes;
}

std::unique_ptr<transport::Region> PersistentState::allocate(std::uint64_t bytes) {
  const std::uint64_t at = next_region_;
  const std::span<std::byte> memory = memory_->map(at, bytes);
  regions_[at] = memory;
  try {
    touch_first(memory);
    auto region = fabric_.adopt(memory, memory_->location(at));
    append_words(Record::region, {at, bytes});
    next_region_ = at + to_pages(bytes);
    return region;
  } catch (...) {
    roll_back(mark());
    throw;
  }
}

std::unique_ptr<transport::Region> PersistentState::reserve(std::uint64_t bytes) {
  const std::uint64_t at =
      (next_region_ + transport::kHugePage - 1) / transport::kHugePage * transport::kHugePage;
  auto region = transport::reserved_region(map_region(at, bytes), memory_->location(at));
  append_words(Record::reserved, {at, bytes});
  return region;
}

/// Maps the region at `offset`; the next region begins after it.
std::span<std::byte> PersistentState::map_region(std::uint64_t offset, std::uint64_t bytes) {
  const std::span<std::byte> memory = memory_->map(offset, bytes);
  regions_[offset] = memory;
  next_region_ = offset + to_pages(bytes);
  return memory;
}

void PersistentState::roll_back(const Mark& mark) noexcept {
  head_->manifest_bytes = mark.manifest_bytes;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::vector<std::span<std::byte>> freed;
  for (auto at = regions_.lower_bound(mark.regions_end); at != regions_.end(); at = regions_.erase(at)) {
    freed.push_back(at->second);
  }
  memory_->unmap(mark.regions_end, freed);
  next_region_ = mark.regions_end;
}

std::unique_ptr<transport::Region> PersistentState::adopt(std::uint64_t offset, std::uint64_t bytes) {
  const std::span<std::byte> memory = map_region(offset, bytes);
  topology::advise_huge_pages(memory);
  return fabric_.adopt(memory, memory_->location(offset));
}

std::unique_ptr<transport::Region> PersistentState::adopt_reserved(std::uint64_t offset,
                                                                   std::uint64_t bytes) {
  return transport::reserved_region(map_region(offset, bytes), memory_->location(offset));
}

}  // namespace capstan::ps

// store_recovery.cpp -- the shards of a process that is dead, made whole.
#include <fmt/format.h>

#include <atomic>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "ps/shard/store.hpp"

namespace capstan::ps {

void Store::add_shard(const ShardRecord& record) {
  const protocol::CreateShard& description = record.description;
  Shard made;
  made.description = description;
  const PiecePlace& place = record.pieces.at(0);
  if (place.region == protocol::kNoRegion) {  // recover() says what that means
    shards_.emplace(std::pair(description.variable, description.shard), std::move(made));
    return;
  }
  const Piece values = heap_.at(place.region, place.offset);
  const Piece version = heap_.at(record.pieces.at(1).region, record.pieces.at(1).offset);
  made.values = values.data;
  made.version = reinterpret_cast<std::uint64_t*>(version.data);
  made.steps = reinterpret_cast<std::int64_t*>(version.data + sizeof(std::uint64_t));
  made.place = {ps_index_,     description.first_row, description.rows, values.region,
                values.offset, version.region,        version.offset};
  for (std::size_t slot = 2; slot < record.pieces.size(); ++slot) {
    made.slots.push_back(heap_.at(record.pieces[slot].region, record.pieces[slot].offset).data);
  }
  shards_.emplace(std::pair(description.variable, description.shard), std::move(made));
}

/// The entry's pusher, or the closure that runs again, has it applied once more.
void Store::undo_cut_off() {
  const auto entry = kept_->cut_off();
  if (!entry) return;
  ledger_.set_entered(entry->header, entry->entered);
  const bool rows =
      entry->header.kind == protocol::PushKind::sparse || entry->header.kind == protocol::PushKind::dense;
  const auto found = shards_.find({entry->header.variable, entry->header.shard});
  if (rows && found != shards_.end()) {
    Shard& shard = found->second;
    std::byte* bases[Journal::kArrays] = {shard.values};
    for (std::size_t slot = 0; slot < shard.slots.size(); ++slot) bases[slot + 1] = shard.slots[slot];
    kept_->journal().undo(bases);
    *shard.steps = entry->steps;
  }
  // A restore changes rows without the journal; the process after this one must not undo that.
  kept_->journal().retire();
}

void Store::recover() {
  const std::lock_guard lock(mutex_);
  for (const PersistentState::Item& item : kept_->items()) {
    switch (item.record) {
      case PersistentState::Record::region: {
        const auto words = from_bytes<std::array<std::uint64_t, 2>>(item.bytes);
        heap_.add(kept_->again(words[0], words[1]));
        break;
      }
      case PersistentState::Record::shard:
        add_shard(from_bytes<ShardRecord>(item.bytes));
        break;
      case PersistentState::Record::dropped: {
        const auto variable = from_bytes<std::uint64_t>(item.bytes);
        std::erase_if(shards_, [&](const auto& entry) { return entry.first.first == variable; });
        break;
      }
      case PersistentState::Record::gone:
        ledger_.close(static_cast<int>(from_bytes<std::uint64_t>(item.bytes)));
        break;
      case PersistentState::Record::group:
        throw Error(Code::unavailable,
                    "what the workers of an update group had pushed in their last step died with the ps");
      default:
        break;
    }
  }
  for (const auto& [key, shard] : shards_) {
    if (shard.description.memory != ShardMemory::device) continue;
    throw Error(
        Code::unavailable,
        fmt::format("shard {} of variable \"{}\" was in the memory of a GPU, and died with the ps: let "
                    "a spare take its place (--spares, --replicas-of-ps), or start again with "
                    "--resume to go on from the last checkpoint",
                    protocol::name_of(shard.description), shard.description.name));
  }
  undo_cut_off();
  for (const auto& [rank, push] : kept_->unfinished_pushes()) {
    const auto found = shards_.find({push.variable(), push.shard()});
    if (found != shards_.end()) ++found->second.unfinished;
  }
  for (auto& [key, shard] : shards_) {
    // Odd as long as a push is half applied; another value than before, either way: a reader that began
    // before the death has read what was undone.
    const std::atomic_ref<std::uint64_t> version(*shard.version);
    const std::uint64_t even = version.load(std::memory_order_relaxed) / 2 * 2 + 2;
    version.store(shard.unfinished != 0 ? even + 1 : even, std::memory_order_release);
  }
}

std::vector<protocol::ListedShard> Store::list() {
  const std::lock_guard lock(mutex_);
  std::vector<protocol::ListedShard> all;
  for (const auto& [key, shard] : shards_) all.push_back({shard.description, shard.place});
  return all;
}

}  // namespace capstan::ps

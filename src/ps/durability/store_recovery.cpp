// store_recovery.cpp -- recovers the shards of the previous process from its memory and manifest.
#include <fmt/format.h>

#include <array>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "ps/shard/store.hpp"

namespace capstan::ps {

/// Adopts regions and closes dead workers in the ledger. Returns the shards that were not dropped.
std::map<Store::Key, ShardRecord> Store::replay_manifest() {
  std::map<Key, ShardRecord> shards;
  for (const PersistentState::Item& item : persistent_->items()) {
    switch (item.record) {
      case PersistentState::Record::region: {
        const auto words = from_bytes<std::array<std::uint64_t, 2>>(item.bytes);
        heap_.add(persistent_->adopt(words[0], words[1]));
        break;
      }
      case PersistentState::Record::reserved: {
        const auto words = from_bytes<std::array<std::uint64_t, 2>>(item.bytes);
        heap_.add_reserved(persistent_->adopt_reserved(words[0], words[1]));
        break;
      }
      case PersistentState::Record::shard: {
        auto record = from_bytes<ShardRecord>(item.bytes);
        const Key key{record.description.variable, record.description.shard};
        shards.emplace(key, std::move(record));
        break;
      }
      case PersistentState::Record::dropped: {
        const auto variable = from_bytes<std::uint64_t>(item.bytes);
        std::erase_if(shards, [&](const auto& entry) { return entry.first.first == variable; });
        break;
      }
      case PersistentState::Record::dead:
        ledger_.close(static_cast<int>(from_bytes<std::uint64_t>(item.bytes)));
        break;
      case PersistentState::Record::group:
        throw Error(Code::unavailable,
                    "cannot recover an update group: the pushes of its unfinished step are lost with the "
                    "previous process of this ps; restart with --resume to continue from the last "
                    "checkpoint");
      default:
        break;
    }
  }
  return shards;
}

void Store::recover() {
  const std::lock_guard lock(mutex_);
  std::map<Key, std::shared_ptr<HostShard>> recovered;
  for (const auto& [key, record] : replay_manifest()) {
    const protocol::CreateShard& description = record.description;
    if (description.memory == ShardMemory::device) {
      throw Error(
          Code::unavailable,
          fmt::format("cannot recover shard {} of variable \"{}\": it was in GPU memory, which is lost with "
                      "the previous process of this ps; add spares (--spares, --replicas-of-ps), or "
                      "restart with --resume to continue from the last checkpoint",
                      protocol::name_of(description), description.name));
    }
    recovered.emplace(key, factory_.recover(record));
  }
  // The pusher of an uncommitted entry sends it again, or the closure that pushed it runs again.
  if (const auto entry = persistent_->uncommitted_entry()) {
    const protocol::PushHeader& header = entry->header;
    ledger_.set_entered(header, entry->entered);
    const auto shard = recovered.find({header.variable, header.shard});
    if (protocol::changes_rows(header.kind) && shard != recovered.end()) shard->second->undo(entry->steps);
    // A restore changes rows without the journal, so a later process must not undo the entry again.
    persistent_->journal().retire();
  }
  for (const auto& [key, shard] : recovered) {
    if (auto* const table = dynamic_cast<TableShard*>(shard.get())) table->rebuild();
  }
  std::map<Key, int> unfinished;
  for (const auto& [rank, push] : persistent_->unfinished_pushes())
    ++unfinished[{push.variable(), push.shard()}];
  for (const auto& [key, shard] : recovered) shard->resume(unfinished[key]);
  shards_.insert(recovered.begin(), recovered.end());
}

}  // namespace capstan::ps

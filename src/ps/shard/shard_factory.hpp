// shard_factory.hpp -- allocation of shards, and its rollback.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "protocol/ps_messages.hpp"
#include "ps/durability/persistent_state.hpp"
#include "ps/shard/chunk_pool.hpp"
#include "ps/shard/device_context.hpp"
#include "ps/shard/heap.hpp"
#include "ps/shard/host_shard.hpp"
#include "ps/shard/shard.hpp"

namespace capstan::ps {

/// Makes shards in memory of the heap and of the GPU, and records them in the manifest. Calls require the
/// mutex of the store.
class ShardFactory {
 public:
  /// `persistent`: the manifest; null: no process follows this one. The arguments must outlive the factory.
  ShardFactory(Heap& heap, DeviceContext& device, PersistentState* persistent, int ps_index)
      : heap_(heap), device_(device), persistent_(persistent), ps_index_(ps_index) {}

  /// Makes a shard with its initial values, or with zeros if they are `restored` from elsewhere. Throws
  /// Error: invalid_argument, resource_exhausted, failed_precondition (no GPU); then nothing stays allocated.
  std::shared_ptr<Shard> make(const protocol::CreateShard& request, bool restored);
  /// Makes the object for a shard whose memory is that of the process before this one.
  std::shared_ptr<HostShard> recover(const ShardRecord& record) const;
  /// Reclaims the memory of the shards of a variable, which have been destroyed, if nothing has been
  /// allocated since; else it stays unused, and the manifest records that the shards were dropped.
  void reclaim(std::uint32_t variable);

 private:
  /// A position in everything that shards are allocated from.
  struct Mark {
    Heap::Mark heap;
    PersistentState::Mark manifest;
    Piece versions;
    std::uint64_t versions_used = 0;
    bool operator==(const Mark& other) const noexcept {
      return heap == other.heap && manifest == other.manifest && versions_used == other.versions_used;
    }
  };
  /// The variable that was created last.
  struct Newest {
    std::uint32_t variable;
    Mark before;  // its shards
    Mark after;
  };

  Mark mark() const noexcept;
  void roll_back(const Mark& mark) noexcept;
  std::shared_ptr<Shard> allocate(const protocol::CreateShard& request, ShardRecord& record);
  std::shared_ptr<Shard> allocate_on_host(const protocol::CreateShard& request, ShardRecord& record);
  std::shared_ptr<Shard> allocate_on_device(const protocol::CreateShard& request, ShardRecord& record);
  Piece allocate_words();
  std::shared_ptr<HostShard> host_shard(const protocol::CreateShard& description, const Piece& values,
                                        const Piece& words, std::vector<std::byte*> slots) const;
  [[noreturn]] void throw_exhausted(const protocol::CreateShard& request, const char* why) const;

  Heap& heap_;
  DeviceContext& device_;
  PersistentState* persistent_;
  int ps_index_;
  std::shared_ptr<ChunkPool> chunks_ = std::make_shared<ChunkPool>();  // of all snapshots
  Piece versions_;                   // a page of Shard::Words, one cache line each
  std::uint64_t versions_used_ = 0;  // bytes of it
  std::optional<Newest> newest_;
};

}  // namespace capstan::ps

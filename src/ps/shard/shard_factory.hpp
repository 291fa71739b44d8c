// shard_factory.hpp -- allocates shards, and rolls back failed allocations.
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
#include "ps/shard/table_shard.hpp"

namespace capstan::ps {

/// Creates shards in the heap or in GPU memory, and records them in the manifest. Calls require the mutex of
/// the store.
class ShardFactory {
 public:
  /// `persistent`: holds the manifest; null: shards are lost with this process. The arguments must outlive
  /// the factory.
  /// `threads`: number of threads that apply an update.
  ShardFactory(Heap& heap, DeviceContext& device, PersistentState* persistent, int ps_index, int threads)
      : heap_(heap),
        device_(device),
        persistent_(persistent),
        ps_index_(ps_index),
        parts_(std::make_shared<UpdateParts>(threads)) {}

  /// Creates a shard with its initial values, or with zeros if its values are to be `restored`. Throws Error:
  /// invalid_argument, resource_exhausted, failed_precondition (no GPU); then nothing stays allocated.
  std::shared_ptr<Shard> make(const protocol::CreateShard& request, bool restored);
  /// Creates the object of a shard whose memory was allocated by the previous process.
  std::shared_ptr<HostShard> recover(const ShardRecord& record) const;
  /// Reclaims the memory of a variable's shards if nothing was allocated after them; otherwise the memory
  /// stays unused, and the manifest records that the shards were dropped. REQUIRES: the shards were
  /// destroyed.
  void reclaim(std::uint32_t variable);

 private:
  /// Allocation position in the heap, the manifest and the page of words.
  struct Mark {
    Heap::Mark heap;
    PersistentState::Mark manifest;
    Piece versions;
    std::uint64_t versions_used = 0;
    bool operator==(const Mark& other) const noexcept {
      return heap == other.heap && manifest == other.manifest && versions_used == other.versions_used;
    }
  };
  /// The variable created last, and the positions before and after its shards.
  struct Newest {
    std::uint32_t variable;
    Mark before;
    Mark after;
  };

  Mark mark() const noexcept;
  void roll_back(const Mark& mark) noexcept;
  std::shared_ptr<Shard> allocate(const protocol::CreateShard& request, ShardRecord& record);
  std::shared_ptr<Shard> allocate_on_host(const protocol::CreateShard& request, ShardRecord& record);
  std::shared_ptr<Shard> allocate_table(const protocol::CreateShard& request, ShardRecord& record);
  std::shared_ptr<Shard> allocate_on_device(const protocol::CreateShard& request, ShardRecord& record);
  Piece allocate_words();
  HostShard::Shared shared_by(const protocol::CreateShard& description) const;
  std::shared_ptr<HostShard> host_shard(const protocol::CreateShard& description, const Piece& values,
                                        const Piece& words, std::vector<std::byte*> slots) const;
  std::shared_ptr<TableShard> table_shard(const protocol::CreateShard& description, const Piece& memory,
                                          const Piece& words) const;
  [[noreturn]] void throw_exhausted(const protocol::CreateShard& request, const char* why) const;

  Heap& heap_;
  DeviceContext& device_;
  PersistentState* persistent_;
  int ps_index_;
  std::shared_ptr<ChunkPool> chunks_ = std::make_shared<ChunkPool>();
  std::shared_ptr<UpdateParts> parts_;
  Piece versions_;                   // a page of Shard::Words, one cache line each
  std::uint64_t versions_used_ = 0;  // bytes of that page in use
  std::optional<Newest> newest_;
};

}  // namespace capstan::ps

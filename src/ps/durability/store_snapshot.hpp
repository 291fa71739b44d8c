// store_snapshot.hpp -- all shards of a store as they were, while pushes go on: what a checkpoint is written
// from.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "io/hdf5/checkpoint_types.hpp"
#include "protocol/descriptor.hpp"
#include "protocol/ps_messages.hpp"
#include "ps/shard/frozen_rows.hpp"

namespace capstan::ps {

class Store;

/// Each shard is as it was between two pushes, when no push to it was half applied. Made and ended by the
/// store's thread; `parts` is for one other thread.
class StoreSnapshot {
 public:
  /// Of the shards that are whole now; no further push begins on the others before `advance` has taken them.
  explicit StoreSnapshot(Store& store, const protocol::SavedRows& rows = {});
  ~StoreSnapshot();
  StoreSnapshot(const StoreSnapshot&) = delete;
  StoreSnapshot& operator=(const StoreSnapshot&) = delete;

  /// Takes what has become whole; true when all have been taken.
  bool advance();
  /// The next call of it has to copy a shard from a GPU, which may take seconds.
  bool is_at_a_gpu() const;

  /// The arrays of `count` files: the first shard of each variable is in the first one, and so on. Their rows
  /// are to be read once and in order, as io::write_part does. `before_each` runs before each read of so
  /// many bytes, and ends it by throwing. REQUIRES: all shards have been taken.
  std::vector<std::vector<io::PartArray>> parts(int count,
                                                std::function<void(std::uint64_t bytes)> before_each = {});

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;
  struct Taken {
    Key key;
    protocol::CreateShard description;
    std::int64_t steps;
    std::shared_ptr<FrozenRows> rows;
  };

  bool take_those_whole();
  /// Throws std::bad_alloc, and the shard is then waited for as before.
  bool take_if_whole(const Key& key);
  void let_go();
  static io::PartArray numbers_of(const Taken& taken);
  io::PartArray array_of(const Taken& taken, std::size_t number) const;

  Store& store_;
  protocol::SavedRows rows_;
  std::vector<Key> waits_for_;
  std::vector<Taken> taken_;
};

}  // namespace capstan::ps

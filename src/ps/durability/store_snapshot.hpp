// store_snapshot.hpp -- snapshot of all shards of a store, from which a checkpoint is written while pushes
// continue.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "io/hdf5/checkpoint_types.hpp"
#include "protocol/descriptor.hpp"
#include "protocol/ps_messages.hpp"
#include "ps/shard/frozen_rows.hpp"

namespace capstan::ps {

class Store;

/// Each shard is frozen between two pushes, when it is consistent. Used by the ps's thread, except `parts`
/// and the arrays that it returns, which are for one other thread.
class StoreSnapshot {
 public:
  /// Freezes the shards that are consistent now. No further push begins on the others until `advance` has
  /// frozen them. `store` must outlive this object. Throws std::bad_alloc or Error(resource_exhausted).
  explicit StoreSnapshot(Store& store, const protocol::SavedRows& rows = {});
  ~StoreSnapshot();
  StoreSnapshot(const StoreSnapshot&) = delete;
  StoreSnapshot& operator=(const StoreSnapshot&) = delete;

  /// Freezes the shards that have become consistent. Returns true once all are frozen. Throws like the
  /// constructor, and may be called again after that.
  bool advance();
  /// Returns true if the next `advance` copies all rows of a shard, which may take seconds.
  bool advance_copies_rows() const;

  /// Returns the arrays of `count` files: the first shard of each variable is in the first file, the second
  /// in the second, and so on. Their rows must be read once and in order, as io::write_part does.
  /// `before_each` is called before each read with its number of bytes, and cancels the read by throwing.
  /// REQUIRES: all shards are frozen.
  std::vector<std::vector<io::PartArray>> parts(int count,
                                                std::function<void(std::uint64_t bytes)> before_each = {});

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;
  struct FrozenShard {
    Key key;
    protocol::CreateShard description;
    std::int64_t steps;
    std::optional<double> learning_rate;  // overrides the learning rate of the description
    std::shared_ptr<FrozenRows> rows;
  };

  bool freeze_consistent();
  bool freeze_if_consistent(const Key& key);
  void release();
  static io::PartArray row_numbers_of(const FrozenShard& frozen);
  io::PartArray array_of(const FrozenShard& frozen, std::size_t number) const;

  Store& store_;
  protocol::SavedRows rows_;
  std::vector<Key> pending_;
  std::vector<FrozenShard> frozen_;
};

}  // namespace capstan::ps

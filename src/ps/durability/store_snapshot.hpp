// store_snapshot.hpp -- all shards of a store as they were, while pushes go on: what a checkpoint is written
// from.
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

/// Each shard is as it was between two pushes, when it was consistent. Constructed and destroyed by the
/// thread of the store; `parts` is for one other thread.
class StoreSnapshot {
 public:
  /// Takes the shards that are consistent now. No further push begins on the others before `advance` has
  /// taken them. Throws std::bad_alloc or Error(resource_exhausted).
  explicit StoreSnapshot(Store& store, const protocol::SavedRows& rows = {});
  ~StoreSnapshot();
  StoreSnapshot(const StoreSnapshot&) = delete;
  StoreSnapshot& operator=(const StoreSnapshot&) = delete;

  /// Takes the shards that have become consistent. Returns true if all have been taken. Throws as the
  /// constructor, and may then be called again.
  bool advance();
  /// Returns true if the next `advance` has to copy all rows of a shard, which may take seconds.
  bool advance_copies_rows() const;

  /// Returns the arrays of `count` files: the first shard of each variable is in the first file, and so on.
  /// Their rows must be read once and in order, as io::write_part does. `before_each` is called before a read
  /// of so many bytes, and cancels it by throwing. REQUIRES: all shards have been taken.
  std::vector<std::vector<io::PartArray>> parts(int count,
                                                std::function<void(std::uint64_t bytes)> before_each = {});

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;
  struct Taken {
    Key key;
    protocol::CreateShard description;
    std::int64_t steps;
    std::optional<double> learning_rate;  // that was set
    std::shared_ptr<FrozenRows> rows;
  };

  bool take_consistent();
  bool take_if_consistent(const Key& key);
  void release();
  static io::PartArray row_numbers_of(const Taken& taken);
  io::PartArray array_of(const Taken& taken, std::size_t number) const;

  Store& store_;
  protocol::SavedRows rows_;
  std::vector<Key> pending_;
  std::vector<Taken> taken_;
};

}  // namespace capstan::ps

// store_restore.cpp -- shards from a checkpoint, whoever wrote it.
#include "store/store.hpp"
#include "io/hdf5/checkpoint_reader.hpp"

namespace capstan::store {

void Store::restore(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  const io::CheckpointReader reader{folder};
  for (auto& [key, shard] : shards_) {
    const shard::CreateShard& d = shard.description;
    for (const auto& snapshot : shard.snapshots) snapshot->preserve_all();
    reader.read_rows(d.name, io::kValue, d.first_row, d.rows, shard.values);
    const std::vector<std::string> names = shard::slots_of(d.optimizer.kind);
    for (std::size_t slot = 0; slot < names.size(); ++slot) {
      reader.read_rows(d.name, names[slot], d.first_row, d.rows, shard.slots[slot]);
    }
    *shard.steps = reader.variable(d.name).steps_of(d.first_row, d.rows);
  }
}

}  // namespace capstan::store

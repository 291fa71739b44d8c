// store_checkpoint.cpp -- shards to part files.
#include "io/hdf5/part_writer.hpp"
#include "store/store.hpp"

namespace capstan::store {

std::vector<io::PartReport> Store::save(const std::string& folder, int ps_count, int parts) {
  const std::lock_guard lock(mutex_);
  std::vector<std::vector<io::PartArray>> files(static_cast<std::size_t>(parts));
  std::map<std::uint32_t, std::size_t> shards_seen;  // by variable
  for (const auto& [key, shard] : shards_) {
    const shard::CreateShard& d = shard.description;
    auto& arrays = files.at(shards_seen[d.variable]++);
    io::PartArray array{d.name,      io::kValue, d.dtype,      shard::stored_shape(d.shape),
                        d.first_row, d.rows,     shard.values, shard::describe(d.optimizer),
                        *shard.steps};
    arrays.push_back(array);
    const std::vector<std::string> names = shard::slots_of(d.optimizer.kind);
    for (std::size_t slot = 0; slot < names.size(); ++slot) {
      array.which = names[slot];
      array.data = shard.slots[slot];
      array.dtype = shard::slot_dtype(d.dtype);
      array.optimizer.clear();
      array.steps = 0;
      arrays.push_back(array);
    }
  }
  std::vector<io::PartReport> reports;
  for (int file = 0; file < parts; ++file) {
    const std::string name = io::part_file_name(ps_index_ + file * ps_count, ps_count * parts);
    reports.push_back(
        io::write_part(std::filesystem::path(folder) / name, files[static_cast<std::size_t>(file)]));
  }
  return reports;
}

}  // namespace capstan::store

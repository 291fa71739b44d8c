// store_restore.cpp -- verifies all bytes of a checkpoint, then reads them into the shards.
#include "ps/durability/store_restore.hpp"

#include "io/file.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/verify.hpp"
#include "ps/durability/restore_files.hpp"

namespace capstan::ps {

void check_restore(const protocol::CheckRestore& check) {
  RestoreFiles files(check.directory, check.files);
  for (const protocol::DatasetCheck& dataset : check.datasets) {
    const io::FileDescriptor& file = files.open(dataset.file);
    io::check_dataset(file, files.path(), dataset.offset, dataset.bytes, dataset.xxh3, dataset.path);
  }
}

void Store::restore(const protocol::RestorePart& part) {
  const std::lock_guard lock(mutex_);
  RestoreFiles files(part.directory, part.files);
  for (const protocol::RestoreShard& from : part.shards) find(from.variable, from.shard).restore(from, files);
}

void restore_checkpoint(Store& store, const std::string& directory) {
  const io::CheckpointReader reader{directory};
  protocol::RestorePlan plan(reader, 1);
  for (const protocol::ListedShard& listed : store.list()) {
    const protocol::CreateShard& d = listed.description;
    const protocol::ShardSource shard{d.variable,  d.shard, d.name,
                                      d.first_row, d.rows,  protocol::slots_of(d.optimizer.kind)};
    if (d.table) {
      plan.fill_table(0, shard, protocol::rows_of(d.shape) / d.rows);
    } else {
      plan.fill(0, shard);
    }
  }
  check_restore(plan.checks().front());
  store.restore(plan.parts().front());
}

}  // namespace capstan::ps

// store_restore.cpp -- plan, verification, then plain reads into place.
#include "ps/durability/store_restore.hpp"

#include <fmt/format.h>

#include "capstan/error.hpp"
#include "io/file.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/verify.hpp"
#include "ps/durability/restore_files.hpp"
#include "ps/shard/shard_writing.hpp"

namespace capstan::ps {

void check_restore(const protocol::CheckRestore& check) {
  RestoreFiles files(check.folder, check.files);
  for (const protocol::DatasetCheck& dataset : check.datasets) {
    const io::FileDescriptor& file = files.open(dataset.file);
    io::check_dataset(file, files.path(), dataset.offset, dataset.bytes, dataset.xxh3, dataset.path);
  }
}

/// A manifest that says anything else of a slot than its variable's optimizer has would reach past it.
void Store::check_bounds(const protocol::RestoreShard& from, const Shard& to) {
  const auto row_bytes = [&to](std::uint32_t array) {
    return array == 0 ? to.row_bytes() : to.width() * size_of(protocol::slot_dtype(to.description.dtype));
  };
  const auto refuse_unless = [&to](bool fits) {
    if (!fits)
      throw Error(Code::data_loss,
                  fmt::format("rows for \"{}\" are not as long as its own", to.description.name));
  };
  for (const protocol::RestorePiece& piece : from.pieces) {
    const std::uint64_t all = to.description.rows * row_bytes(piece.array);
    refuse_unless(piece.at <= all && piece.bytes <= all - piece.at);
  }
  for (const protocol::RestoreChanges& changes : from.changes)
    refuse_unless(changes.rows.row_bytes == row_bytes(changes.array));
}

void Store::restore(const protocol::RestorePart& part) {
  const std::lock_guard lock(mutex_);
  RestoreFiles files(part.folder, part.files);
  for (const protocol::RestoreShard& from : part.shards) {
    Shard& to = find(from.variable, from.shard);
    for (const auto& snapshot : to.snapshots) snapshot->preserve_all();
    if (to.touched) to.touched->add_all();
    check_bounds(from, to);
    const Writing writing(to);  // a consistent read sees the shard as before the restore, or as after it
    if (to.on_gpu) {
      restore_on_gpu(from, *to.on_gpu, files);
    } else {
      restore_on_host(from, to, files);
    }
    *to.steps = from.steps;
  }
}

void Store::restore_on_host(const protocol::RestoreShard& from, Shard& to, RestoreFiles& files) {
  const auto array = [&to](std::uint32_t number) {
    return number == 0 ? to.values : to.slots.at(number - 1);
  };
  for (const protocol::RestorePiece& piece : from.pieces) {
    const io::FileDescriptor& file = files.open(piece.file);
    io::read_at(file, files.path(), piece.offset, array(piece.array) + piece.at, piece.bytes);
  }
  for (const protocol::RestoreChanges& changes : from.changes) {
    const io::FileDescriptor& file = files.open(changes.file);
    io::apply_changed_rows(file, files.path(), changes.rows, to.description.first_row, to.description.rows,
                           array(changes.array));
  }
}

void restore_checkpoint(Store& store, const std::string& directory) {
  const io::CheckpointReader reader{directory};
  protocol::RestorePlan plan(reader, 1);
  for (const protocol::ListedShard& listed : store.list()) {
    const protocol::CreateShard& d = listed.description;
    plan.fill(0, {d.variable, d.shard, d.name, d.first_row, d.rows, protocol::slots_of(d.optimizer.kind)});
  }
  check_restore(plan.checks().front());
  store.restore(plan.parts().front());
}

}  // namespace capstan::ps

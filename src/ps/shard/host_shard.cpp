// host_shard.cpp -- updates, reads and restores rows in place.
#include "ps/shard/host_shard.hpp"

#include <cstring>
#include <utility>

#include "base/with_type.hpp"
#include "io/file.hpp"
#include "io/hdf5/changed_rows.hpp"
#include "protocol/row_copy.hpp"
#include "ps/durability/restore_files.hpp"
#include "ps/shard/initialize.hpp"
#include "ps/shard/shard_rounding.hpp"
#include "ps/shard/shard_snapshot.hpp"
#include "ps/update/kernels.hpp"
#include "ps/update/row_ops.hpp"
#include "ps/update/update_in_groups.hpp"

namespace capstan::ps {

HostShard::HostShard(protocol::CreateShard description, const protocol::ShardLocation& location,
                     const Words& words, Arrays arrays, Shared shared)
    : Shard(std::move(description), location, words),
      values_(arrays.values),
      slots_(std::move(arrays.slots)),
      optimizer_(this->description().optimizer),
      shared_(std::move(shared)) {}

void HostShard::initialize() {
  const protocol::CreateShard& d = description();
  ps::initialize(d, values_);
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    const double value = protocol::initial_slot_value(d.optimizer, slot);
    if (value == 0) continue;  // the memory is zeroed
    ps::initialize({InitializerKind::constant, value, 0, 0}, protocol::slot_dtype(d.dtype), 0,
                   rows() * width(), slots_[slot]);
  }
}

void HostShard::gather(std::span<const std::uint32_t> rows, std::byte* out) const {
  protocol::gather_rows(values_, row_bytes(), rows, {}, out);
}

void HostShard::gather(std::uint64_t first_byte, std::span<std::byte> out) const {
  if (!out.empty()) std::memcpy(out.data(), values_ + first_byte, out.size());
}

void HostShard::update(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                       const std::byte* values) {
  with_type(description().dtype, [&]<class T>(std::type_identity<T>) { update_as<T>(header, rows, values); });
}

template <class T>
void HostShard::update_as(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                          const std::byte* values) {
  using Slot = Arithmetic<T>;
  Update<T> u;
  u.values = reinterpret_cast<T*>(values_);
  u.slot0 = slots_.empty() ? nullptr : reinterpret_cast<Slot*>(slots_[0]);
  u.slot1 = slots_.size() < 2 ? nullptr : reinterpret_cast<Slot*>(slots_[1]);
  u.gradient = reinterpret_cast<const T*>(values);
  u.step = steps();
  // Depends on nothing but the number of updates, so that an undone update has the same results again.
  u.rounding = rounding_of(description(), static_cast<std::uint64_t>(steps()));
  u.first_value = u.values;
  u.first_gradient = u.gradient;
  u.width = width();
  u.count = header.rows;
  if (header.kind == protocol::PushKind::sparse) {
    u.rows = rows.data();
  } else {
    // Treat consecutive rows as one long row, so that the kernel runs without a break at row ends.
    u.values += header.first_row * u.width;
    if (u.slot0 != nullptr) u.slot0 += header.first_row * u.width;
    if (u.slot1 != nullptr) u.slot1 += header.first_row * u.width;
    u.width *= u.count;
    u.count = 1;
  }
  const bool gradient = header.op == protocol::RowOp::gradient;
  optimizer_.learning_rate = learning_rate();
  const auto apply = [&](const Update<T>& part) {
    if (!gradient) {
      ps::apply(header.op, part);
    } else if constexpr (!std::is_same_v<T, std::uint8_t>) {
      ps::apply(optimizer_, part);
    }
  };
  const std::vector<std::byte*> none;
  const std::vector<std::byte*>& changed_slots = gradient ? slots_ : none;
  shared_.parts->apply(u, [&](const Update<T>& part, std::size_t number) {
    if (journal() == nullptr) return apply(part);
    apply_in_groups(part, reinterpret_cast<T*>(values_), changed_slots, *journal(), apply, number);
  });
}

std::shared_ptr<FrozenRows> HostShard::freeze_rows(std::optional<TouchedRows> touched) {
  std::vector<ShardSnapshot::Array> arrays;
  for (std::uint32_t number = 0; number <= slots_.size(); ++number)
    arrays.push_back({array(number), bytes_per_row(number)});
  auto snapshot = std::make_shared<ShardSnapshot>(arrays, rows(), std::move(touched), chunks());
  attach(snapshot);
  return snapshot;
}

void HostShard::restore_rows(const protocol::RestoreShard& from, RestoreFiles& files) {
  for (const protocol::RestorePiece& piece : from.pieces) {
    const io::FileDescriptor& file = files.open(piece.file);
    io::read_at(file, files.path(), piece.offset, array(piece.array) + piece.at, piece.bytes);
  }
  for (const protocol::RestoreChanges& changes : from.changes) {
    const io::FileDescriptor& file = files.open(changes.file);
    io::apply_changed_rows(file, files.path(), changes.rows, description().first_row, rows(),
                           array(changes.array));
  }
}

void HostShard::undo(std::int64_t steps) {
  std::byte* bases[Journal::kArrays] = {values_};
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) bases[slot + 1] = slots_[slot];
  add_bases(bases);
  journal()->undo(bases);
  set_steps(steps);
}

}  // namespace capstan::ps

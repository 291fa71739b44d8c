// host_shard.cpp -- updates, reads and restores rows in place.
#include "ps/shard/host_shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/with_type.hpp"
#include "capstan/error.hpp"
#include "io/file.hpp"
#include "io/hdf5/changed_rows.hpp"
#include "protocol/int8_rows.hpp"
#include "protocol/row_copy.hpp"
#include "ps/durability/restore_files.hpp"
#include "ps/shard/initialize.hpp"
#include "ps/shard/shard_rounding.hpp"
#include "ps/shard/shard_snapshot.hpp"
#include "ps/update/int8_update.hpp"
#include "ps/update/kernels.hpp"
#include "ps/update/row_ops.hpp"
#include "ps/update/update_in_groups.hpp"

namespace capstan::ps {
namespace {

/// Parts of int8 rows are read in pieces of this many elements, in memory on the stack.
constexpr std::uint64_t kInt8PartElements = 1024;
/// Int8 rows are initialized and restored in chunks of about this many bytes of floats.
constexpr std::uint64_t kInt8ChunkBytes = std::uint64_t{4} << 20;

std::span<const float> as_floats(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

HostShard::HostShard(protocol::CreateShard description, const protocol::ShardLocation& location,
                     const Words& words, Arrays arrays, Shared shared)
    : Shard(std::move(description), location, words),
      values_(arrays.values),
      slots_(std::move(arrays.slots)),
      optimizer_(this->description().optimizer),
      shared_(std::move(shared)) {}

void HostShard::initialize() {
  const protocol::CreateShard& d = description();
  initialize_values();
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    const double value = protocol::initial_slot_value(d.optimizer, slot);
    if (value == 0) continue;  // the memory is zeroed
    ps::initialize({InitializerKind::constant, value, 0, 0}, protocol::slot_dtype(d.dtype), 0,
                   rows() * width(), slots_[slot]);
  }
}

void HostShard::initialize_values() {
  const protocol::CreateShard& d = description();
  if (!stores_int8()) return ps::initialize(d, values_);
  const std::uint64_t step =
      must_compute_all_rows(d) ? rows() : std::max<std::uint64_t>(kInt8ChunkBytes / row_bytes(), 1);
  std::vector<std::byte> chunk;
  for (std::uint64_t first = 0; first < rows(); first += step) {
    const std::uint64_t count = std::min(step, rows() - first);
    chunk.assign(count * row_bytes(), std::byte{0});
    if (must_compute_all_rows(d)) {
      ps::initialize(d, chunk.data());
    } else {
      ps::initialize(d.initializer, d.dtype, d.shape, d.first_row + first, count, chunk.data());
    }
    store_rows(first, chunk);
  }
}

std::uint64_t HostShard::stored_bytes_per_row(std::uint32_t number) const noexcept {
  return number == 0 ? protocol::stored_row_bytes(description().dtype, width(), description().storage)
                     : bytes_per_row(number);
}

void HostShard::store_rows(std::uint64_t first_row, std::span<const std::byte> values) {
  std::byte* const to = values_ + first_row * stored_bytes_per_row(0);
  if (stores_int8()) return protocol::to_int8_rows(as_floats(values), width(), to);
  if (!values.empty()) std::memcpy(to, values.data(), values.size());
}

void HostShard::round_as_stored(std::span<std::byte> values) const {
  if (!stores_int8()) return;
  std::vector<std::byte> stored(values.size() / row_bytes() * stored_bytes_per_row(0));
  protocol::to_int8_rows(as_floats(values), width(), stored.data());
  protocol::from_int8_rows(stored, width(), reinterpret_cast<float*>(values.data()));
}

void HostShard::gather(std::span<const std::uint32_t> rows, std::byte* out) const {
  if (stores_int8()) return protocol::gather_int8_rows(values_, width(), rows, reinterpret_cast<float*>(out));
  protocol::gather_rows(values_, row_bytes(), rows, {}, out);
}

void HostShard::gather(std::uint64_t first_byte, std::span<std::byte> out) const {
  if (out.empty()) return;
  if (!stores_int8()) {
    std::memcpy(out.data(), values_ + first_byte, out.size());
    return;
  }
  gather_int8(first_byte, out);
}

void HostShard::gather_int8(std::uint64_t first_byte, std::span<std::byte> out) const {
  const std::uint64_t stored = stored_bytes_per_row(0);
  float elements[kInt8PartElements];
  while (!out.empty()) {
    const std::uint64_t row = first_byte / row_bytes();
    const std::uint64_t first = first_byte % row_bytes() / sizeof(float);
    const std::uint64_t skipped = first_byte % sizeof(float);
    const std::uint64_t asked = (skipped + out.size() + sizeof(float) - 1) / sizeof(float);
    const std::uint64_t count = std::min({asked, width() - first, kInt8PartElements});
    protocol::from_int8_row({values_ + row * stored, stored}, first, {elements, count});
    const std::uint64_t bytes = std::min(count * sizeof(float) - skipped, out.size());
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(elements) + skipped, bytes);
    out = out.subspan(bytes);
    first_byte += bytes;
  }
}

void HostShard::update(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                       const std::byte* values) {
  if (stores_int8()) return update_int8(header, rows, values);
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

/// Consecutive rows are updated as rows with numbers, since each row needs a scale of its own.
void HostShard::update_int8(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                            const std::byte* values) {
  std::vector<std::uint32_t> consecutive;
  if (header.kind != protocol::PushKind::sparse) {
    consecutive.resize(header.rows);
    std::iota(consecutive.begin(), consecutive.end(), static_cast<std::uint32_t>(header.first_row));
    rows = consecutive;
  }
  const bool gradient = header.op == protocol::RowOp::gradient;
  Update<float> u;
  u.slot0 = slots_.empty() ? nullptr : reinterpret_cast<float*>(slots_[0]);
  u.slot1 = slots_.size() < 2 ? nullptr : reinterpret_cast<float*>(slots_[1]);
  u.gradient = u.first_gradient = reinterpret_cast<const float*>(values);
  u.step = steps();
  if (gradient) u.rounding = rounding_of(description(), static_cast<std::uint64_t>(steps()));
  u.width = width();
  u.rows = rows.data();
  u.count = rows.size();
  optimizer_.learning_rate = learning_rate();
  shared_.parts->apply(u, [&](const Update<float>& part, std::size_t number) {
    const Int8Arrays arrays{values_, gradient ? slots_ : std::vector<std::byte*>(), journal(), number};
    update_int8_rows(part, arrays, [&](const Update<float>& row) {
      if (gradient) {
        ps::apply(optimizer_, row);
      } else {
        ps::apply(header.op, row);
      }
    });
  });
}

std::shared_ptr<FrozenRows> HostShard::freeze_rows(std::optional<TouchedRows> touched) {
  std::vector<ShardSnapshot::Array> arrays;
  for (std::uint32_t number = 0; number <= slots_.size(); ++number)
    arrays.push_back({array(number), stored_bytes_per_row(number)});
  auto snapshot = std::make_shared<ShardSnapshot>(arrays, rows(), std::move(touched), chunks());
  attach(snapshot);
  return snapshot;
}

void HostShard::restore_rows(const protocol::RestoreShard& from, RestoreFiles& files) {
  if (stores_int8()) restore_int8_rows(from, files);
  for (const protocol::RestorePiece& piece : from.pieces) {
    if (piece.array == 0 && stores_int8()) continue;
    const io::FileDescriptor& file = files.open(piece.file);
    io::read_at(file, files.path(), piece.offset, array(piece.array) + piece.at, piece.bytes);
  }
  for (const protocol::RestoreChanges& changes : from.changes) {
    if (changes.array == 0 && stores_int8()) continue;
    const io::FileDescriptor& file = files.open(changes.file);
    io::apply_changed_rows(file, files.path(), changes.rows, description().first_row, rows(),
                           array(changes.array));
  }
}

void HostShard::restore_int8_rows(const protocol::RestoreShard& from, RestoreFiles& files) {
  const std::uint64_t step = std::max<std::uint64_t>(kInt8ChunkBytes / row_bytes(), 1);
  std::vector<std::byte> chunk;
  for (const protocol::RestorePiece& piece : from.pieces) {
    if (piece.array != 0) continue;
    if (piece.at % row_bytes() != 0 || piece.bytes % row_bytes() != 0) {
      throw Error(Code::data_loss,
                  fmt::format("cannot restore \"{}\": a piece of the checkpoint begins or ends within a row",
                              description().name));
    }
    const io::FileDescriptor& file = files.open(piece.file);
    for (std::uint64_t done = 0; done < piece.bytes; done += chunk.size()) {
      chunk.resize(std::min(step * row_bytes(), piece.bytes - done));
      io::read_at(file, files.path(), piece.offset + done, chunk.data(), chunk.size());
      store_rows((piece.at + done) / row_bytes(), chunk);
    }
  }
  for (const protocol::RestoreChanges& changes : from.changes) {
    if (changes.array != 0) continue;
    const io::FileDescriptor& file = files.open(changes.file);
    for (std::uint64_t first = 0; first < rows(); first += step) {
      const std::uint64_t count = std::min(step, rows() - first);
      chunk.resize(count * row_bytes());
      gather(first * row_bytes(), chunk);  // rows that did not change are stored as they were
      io::apply_changed_rows(file, files.path(), changes.rows, description().first_row + first, count,
                             chunk.data());
      store_rows(first, chunk);
    }
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

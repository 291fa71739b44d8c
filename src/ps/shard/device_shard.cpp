// device_shard.cpp -- sets initial values; applies pushes from host memory, from staging buffers and from
// arrays on the GPU; restores through pinned memory.
#include "ps/shard/device_shard.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "io/file.hpp"
#include "io/hdf5/changed_rows.hpp"
#include "ps/durability/restore_files.hpp"
#include "ps/shard/device_snapshot.hpp"
#include "ps/shard/initialize.hpp"

namespace capstan::ps {

DeviceShard::DeviceShard(const protocol::CreateShard& description, const protocol::ShardLocation& location,
                         const Words& words, DeviceContext& context)
    : Shard(description, location, words),
      context_(context),
      table_(context.open(description.name), description) {
  table_.fill_with_zeros();
  table_.gpu().settle();
}

void DeviceShard::initialize() {
  initialize_values();
  initialize_slots();
  table_.gpu().settle();
}

void DeviceShard::initialize_values() {
  const protocol::CreateShard& d = description();
  if (must_compute_all_rows(d)) {
    std::vector<std::byte> all(rows() * row_bytes());
    ps::initialize(d, all.data());
    table_.fill(0, [&](std::uint64_t first_byte, std::uint64_t bytes, std::byte* to) {
      std::memcpy(to, all.data() + first_byte, bytes);
    });
    return;
  }
  table_.fill(0, [&](std::uint64_t first_byte, std::uint64_t bytes, std::byte* to) {
    ps::initialize(d.initializer, d.dtype, d.shape, d.first_row + first_byte / row_bytes(),
                   bytes / row_bytes(), to);
  });
}

void DeviceShard::initialize_slots() {
  const DType dtype = protocol::slot_dtype(description().dtype);
  for (std::size_t slot = 0; slot + 1 < table_.arrays(); ++slot) {
    const double value = protocol::initial_slot_value(description().optimizer, slot);
    if (value == 0) continue;  // the memory is zeroed
    table_.fill(slot + 1, [&](std::uint64_t, std::uint64_t bytes, std::byte* to) {
      ps::initialize({InitializerKind::constant, value, 0, 0}, dtype, 0, bytes / size_of(dtype), to);
    });
  }
}

void DeviceShard::gather(std::span<const std::uint32_t> rows, std::byte* out) const {
  context_.run([&] { table_.read_rows(0, rows, out); });
}

void DeviceShard::gather(std::uint64_t first_byte, std::span<std::byte> out) const {
  context_.run([&] { table_.read(0, first_byte, out); });
}

void DeviceShard::update(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                         const std::byte* values) {
  context_.apply([&] {
    if (header.in_staging_buffer != 0) {
      table_.apply_staged(header, rows, staged_gradient(header, values), step());
    } else {
      table_.apply(header, rows, values, step());
    }
  });
}

std::byte* DeviceShard::staged_gradient(const protocol::PushHeader& header,
                                        const std::byte* buffer_slot) const {
  // An update group may keep pushes in host memory until its step ends, so it uses no staging buffer.
  if (description().group != 0 || header.op != protocol::RowOp::gradient) return nullptr;
  protocol::BufferSlot at;
  std::memcpy(&at, buffer_slot, sizeof at);
  return context_.staged(at, header.rank, header.rows * row_bytes());
}

bool DeviceShard::reserve_from_device(int gpu, std::uint64_t rows) {
  // An update group may keep pushes in host memory until its step ends, so it takes none from GPU memory.
  if (table_.gpu().number() != gpu || description().group != 0) return false;
  table_.reserve_from_device(rows);
  return true;
}

void DeviceShard::apply_from_device(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                                    const std::byte* gradient, const gpu::Event& ready) {
  change(header, rows,
         [&] { context_.apply([&] { table_.apply_from_device(header, rows, gradient, ready, step()); }); });
}

std::shared_ptr<FrozenRows> DeviceShard::freeze_rows(std::optional<TouchedRows> touched) {
  return std::make_shared<DeviceSnapshot>(table_, touched);
}

void DeviceShard::restore_rows(const protocol::RestoreShard& from, RestoreFiles& files) {
  for (const protocol::RestorePiece& piece : from.pieces) {
    const io::FileDescriptor& file = files.open(piece.file);
    table_.write(piece.array, piece.at, piece.bytes,
                 [&](std::uint64_t first_byte, std::uint64_t bytes, std::byte* out) {
                   io::read_at(file, files.path(), piece.offset + (first_byte - piece.at), out, bytes);
                 });
  }
  for (const protocol::RestoreChanges& changes : from.changes) {
    const io::FileDescriptor& file = files.open(changes.file);
    table_.change(changes.array, [&](std::uint64_t first_row, std::uint64_t rows, std::byte* data) {
      io::apply_changed_rows(file, files.path(), changes.rows, table_.first_row() + first_row, rows, data);
    });
  }
  table_.gpu().settle();
}

}  // namespace capstan::ps

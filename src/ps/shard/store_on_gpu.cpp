// store_on_gpu.cpp -- making, filling and restoring shards in the memory of the ps's GPU.
#include <fmt/format.h>

#include <cstring>

#include "capstan/error.hpp"
#include "io/file.hpp"
#include "io/hdf5/changed_rows.hpp"
#include "ps/durability/restore_files.hpp"
#include "ps/shard/initialize.hpp"
#include "ps/shard/store.hpp"

namespace capstan::ps {
namespace {

/// Whether the values of some rows take as long to make as those of all.
bool is_made_whole(const protocol::CreateShard& request) {
  return request.fill != 0 || request.initializer.kind == InitializerKind::orthogonal;
}

void fill_values(const protocol::CreateShard& request, DeviceTable& shard) {
  const std::uint64_t row_bytes = shard.array(0).row_bytes;
  if (is_made_whole(request)) {
    std::vector<std::byte> whole(request.rows * row_bytes);
    initialize(request, whole.data());
    shard.fill(0, [&](std::uint64_t first, std::uint64_t bytes, std::byte* to) {
      std::memcpy(to, whole.data() + first, bytes);
    });
    return;
  }
  shard.fill(0, [&](std::uint64_t first, std::uint64_t bytes, std::byte* to) {
    initialize(request.initializer, request.dtype, request.shape, request.first_row + first / row_bytes,
               bytes / row_bytes, to);
  });
}

void fill_slots(const protocol::CreateShard& request, DeviceTable& shard) {
  const DType dtype = protocol::slot_dtype(request.dtype);
  for (std::size_t slot = 0; slot + 1 < shard.arrays(); ++slot) {
    const double value = protocol::initial_slot_value(request.optimizer, slot);
    if (value == 0) continue;  // as it is
    shard.fill(slot + 1, [&](std::uint64_t, std::uint64_t bytes, std::byte* to) {
      initialize({InitializerKind::constant, value, 0, 0}, dtype, 0, bytes / size_of(dtype), to);
    });
  }
}

}  // namespace

void Store::use_gpu(FindGpu find, bool deterministic) {
  find_gpu_ = std::move(find);
  deterministic_ = deterministic;
}

void Store::settle() {
  if (!unsettled()) return;
  const std::lock_guard lock(mutex_);
  settle_now();
}

/// Others go by the flag without the mutex: it says so when the GPU is done, and not before.
void Store::settle_now() {
  if (!unsettled()) return;
  on_gpu([this] { gpu_->settle(); });
  unsettled_.store(false, std::memory_order_release);
}

bool Store::reserve_from_gpu(std::uint32_t variable, std::uint32_t shard, int gpu, std::uint64_t rows) {
  const std::lock_guard lock(mutex_);
  const Shard& found = find(variable, shard);
  // What an update group holds back is on the host.
  const bool may = found.on_gpu && found.on_gpu->gpu().number() == gpu;
  if (!may || found.description.group != 0 || kept_ != nullptr) return false;
  found.on_gpu->reserve_from_device(rows);
  return true;
}

void Store::apply_from_gpu(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                           const std::byte* values, const gpu::Event& made) {
  const std::lock_guard lock(mutex_);
  Shard& shard = find(header.variable, header.shard);
  if (!fits(shard, header, rows)) {
    throw Error(Code::internal,
                fmt::format("a push of {} rows does not fit \"{}\"", header.rows, shard.description.name));
  }
  if (ledger_.enter(header)) apply_now(shard, header, rows, values, &made);
}

void Store::apply_on_gpu(Shard& shard, const protocol::PushHeader& header,
                         std::span<const std::uint32_t> rows, const std::byte* values,
                         const gpu::Event* made) {
  unsettled_.store(true, std::memory_order_relaxed);
  DeviceTable& there = *shard.on_gpu;
  on_gpu([&] {
    if (made != nullptr) {
      there.apply_from_device(header, rows, values, *made, *shard.steps);
    } else if (header.in_staging_buffer != 0) {
      there.apply_staged(header, rows, in_staging_buffer(shard, header, values), *shard.steps);
    } else {
      there.apply(header, rows, values, *shard.steps);
    }
  });
}

void Store::require_gpu() {
  if (!gpu_failed_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  std::rethrow_exception(gpu_failure_);
}

std::byte* Store::in_staging_buffer(const Shard& shard, const protocol::PushHeader& header,
                                    const std::byte* place) const {
  // What an update group holds back is on the host.
  const bool may = shard.on_gpu && shard.description.group == 0 && header.op == protocol::RowOp::gradient;
  if (!may) return nullptr;
  protocol::BufferSlot at;
  std::memcpy(&at, place, sizeof at);
  return gpu_rooms_.at(at, header.rank, header.rows * shard.row_bytes());
}

protocol::StagingBufferKey Store::open_gpu_room(int rank, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return gpu_ ? gpu_rooms_.open(rank, gpu_->number(), bytes) : protocol::StagingBufferKey();
}

void Store::release_gpu_rooms(int rank) {
  const std::lock_guard lock(mutex_);
  gpu_rooms_.release(rank);
}

std::vector<std::byte> Store::gpu_key(std::uint32_t variable, std::uint32_t shard) {
  const std::lock_guard lock(mutex_);
  const Shard& found = find(variable, shard);
  return found.on_gpu ? found.on_gpu->key() : std::vector<std::byte>();
}

std::shared_ptr<ShardGpu> Store::gpu_for(const protocol::CreateShard& request) {
  if (gpu_) return gpu_;
  try {
    if (!find_gpu_) throw Error(Code::failed_precondition, "its process looks for none");
    return gpu_ = std::make_shared<ShardGpu>(find_gpu_(), deterministic_);
  } catch (const Error& error) {
    if (error.code() == Code::resource_exhausted) throw;
    throw Error(
        Code::failed_precondition,
        fmt::format("variable \"{}\" is to lie in the memory of a GPU, and ps {} has none to use: {}; "
                    "start the ps where there is one, or leave the variable in the memory of hosts "
                    "(ShardMemory::host, --ps-memory host)",
                    request.name, ps_index_, error.what()));
  }
}

void Store::make_on_gpu(Shard& made, bool filled) {
  made.on_gpu = std::make_shared<DeviceTable>(gpu_for(made.description), made.description);
  made.on_gpu->fill_with_zeros();
  if (!filled) {
    fill_values(made.description, *made.on_gpu);
    fill_slots(made.description, *made.on_gpu);
  }
  made.on_gpu->gpu().settle();
}

void Store::restore_on_gpu(const protocol::RestoreShard& from, DeviceTable& to, RestoreFiles& files) {
  for (const protocol::RestorePiece& piece : from.pieces) {
    const io::FileDescriptor& file = files.open(piece.file);
    to.write(piece.array, piece.at, piece.bytes,
             [&](std::uint64_t first, std::uint64_t bytes, std::byte* out) {
               io::read_at(file, files.path(), piece.offset + (first - piece.at), out, bytes);
             });
  }
  for (const protocol::RestoreChanges& changes : from.changes) {
    const io::FileDescriptor& file = files.open(changes.file);
    to.change(changes.array, [&](std::uint64_t first, std::uint64_t rows, std::byte* data) {
      io::apply_changed_rows(file, files.path(), changes.rows, to.first_row() + first, rows, data);
    });
  }
  to.gpu().settle();
}

}  // namespace capstan::ps

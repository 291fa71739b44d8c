// store_snapshot.cpp -- taking shards when they are whole, handing out their rows.
#include "ps/durability/store_snapshot.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "io/hdf5/layout.hpp"
#include "ps/shard/device_snapshot.hpp"
#include "ps/shard/store.hpp"

namespace capstan::ps {

StoreSnapshot::StoreSnapshot(Store& store, const protocol::SavedRows& rows) : store_(store), rows_(rows) {
  const std::lock_guard lock(store_.mutex_);
  for (auto& [key, shard] : store_.shards_) {
    ++shard.waiting_reads;
    waits_for_.push_back(key);
  }
  try {
    take_those_whole();
  } catch (...) {
    let_go();
    throw;
  }
}

StoreSnapshot::~StoreSnapshot() {
  const std::lock_guard lock(store_.mutex_);
  let_go();
}

void StoreSnapshot::let_go() {
  for (const Key& key : waits_for_) {
    if (const auto found = store_.shards_.find(key); found != store_.shards_.end())
      --found->second.waiting_reads;
  }
  for (const Taken& taken : taken_) {
    if (const auto found = store_.shards_.find(taken.key); found != store_.shards_.end())
      std::erase(found->second.snapshots, taken.rows);
  }
}

bool StoreSnapshot::advance() {
  if (waits_for_.empty()) return true;
  const std::lock_guard lock(store_.mutex_);
  return take_those_whole();
}

bool StoreSnapshot::is_at_a_gpu() const {
  if (waits_for_.empty()) return false;
  const std::lock_guard lock(store_.mutex_);
  return std::any_of(waits_for_.begin(), waits_for_.end(), [this](const Key& key) {
    const auto found = store_.shards_.find(key);
    return found != store_.shards_.end() && found->second.on_gpu && found->second.unfinished == 0;
  });
}

bool StoreSnapshot::take_those_whole() {
  for (auto key = waits_for_.begin(); key != waits_for_.end();)
    key = take_if_whole(*key) ? waits_for_.erase(key) : key + 1;
  return waits_for_.empty();
}

bool StoreSnapshot::take_if_whole(const Key& key) {
  const auto found = store_.shards_.find(key);
  if (found == store_.shards_.end()) return true;  // dropped
  Store::Shard& shard = found->second;
  if (shard.unfinished != 0) return false;
  std::optional<TouchedRows> touched;
  if (rows_.since != 0 && shard.touched && shard.touched->mark() == rows_.since) touched = shard.touched;
  std::optional<TouchedRows> since_now;
  if (rows_.mark != 0) since_now.emplace(rows_.mark, shard.description.rows);
  taken_.reserve(taken_.size() + 1);
  taken_.push_back({key, shard.description, *shard.steps, shard.freeze(std::move(touched), store_.chunks_)});
  // Nothing from here on wants memory.
  if (since_now) shard.touched = std::move(since_now);
  --shard.waiting_reads;
  return true;
}

std::shared_ptr<FrozenRows> Store::Shard::freeze(std::optional<TouchedRows> of,
                                                 std::shared_ptr<ChunkPool> chunks) {
  if (on_gpu) return std::make_shared<DeviceSnapshot>(*on_gpu, of);
  std::vector<ShardSnapshot::Array> arrays{{values, row_bytes()}};
  const std::uint64_t slot_bytes = width() * size_of(protocol::slot_dtype(description.dtype));
  for (const std::byte* slot : slots) arrays.push_back({slot, slot_bytes});
  auto rows = std::make_shared<ShardSnapshot>(arrays, description.rows, std::move(of), std::move(chunks));
  snapshots.push_back(rows);
  return rows;
}

io::PartArray StoreSnapshot::numbers_of(const Taken& taken) {
  const protocol::CreateShard& d = taken.description;
  io::PartArray numbers{.variable = d.name,
                        .which = io::kChangedRows,
                        .dtype = DType::int64,
                        .shape = {protocol::stored_shape(d.shape).front()},
                        .first_row = d.first_row,
                        .rows = d.rows,
                        .changed = taken.rows->rows()};
  numbers.read = [rows = taken.rows, from = d.first_row](std::uint64_t first, std::uint64_t how_many,
                                                         std::byte* out) {
    for (std::uint64_t i = 0; i < how_many; ++i) {
      const std::uint64_t number = from + rows->row(first + i);
      std::memcpy(out + i * sizeof(number), &number, sizeof(number));
    }
  };
  return numbers;
}

io::PartArray StoreSnapshot::array_of(const Taken& taken, std::size_t number) const {
  const protocol::CreateShard& d = taken.description;
  const bool value = number == 0;
  io::PartArray array{.variable = d.name,
                      .which = value ? io::kValue : protocol::slots_of(d.optimizer.kind)[number - 1],
                      .dtype = value ? d.dtype : protocol::slot_dtype(d.dtype),
                      .shape = protocol::stored_shape(d.shape),
                      .first_row = d.first_row,
                      .rows = d.rows};
  if (rows_.since != 0) array.changed = taken.rows->rows();
  if (!value) return array;
  array.optimizer = protocol::describe(d.optimizer);
  array.steps = taken.steps;
  return array;
}

std::vector<std::vector<io::PartArray>> StoreSnapshot::parts(int count,
                                                             std::function<void(std::uint64_t)> before_each) {
  std::vector<std::vector<io::PartArray>> files(static_cast<std::size_t>(count));
  std::map<std::uint32_t, std::size_t> shards_seen;  // by variable
  std::sort(taken_.begin(), taken_.end(), [](const Taken& a, const Taken& b) { return a.key < b.key; });
  for (const Taken& taken : taken_) {
    taken.rows->list_rows();
    auto& arrays = files.at(shards_seen[taken.description.variable]++);
    if (rows_.since != 0) arrays.push_back(numbers_of(taken));
    for (std::size_t number = 0; number < taken.rows->arrays(); ++number) {
      io::PartArray array = array_of(taken, number);
      array.read = [this, rows = taken.rows, number, before_each,
                    row_bytes = io::row_bytes(array.shape, array.dtype)](
                       std::uint64_t first, std::uint64_t how_many, std::byte* out) {
        if (before_each) before_each(how_many * row_bytes);
        rows->copy(number, first, how_many, out, store_.mutex_);
      };
      arrays.push_back(std::move(array));
    }
  }
  return files;
}

}  // namespace capstan::ps

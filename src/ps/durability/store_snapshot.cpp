// store_snapshot.cpp -- freezes shards once they are consistent, and reads their rows.
#include "ps/durability/store_snapshot.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "capstan/error.hpp"
#include "io/hdf5/layout.hpp"
#include "protocol/int8_rows.hpp"
#include "protocol/table_layout.hpp"
#include "ps/shard/store.hpp"

namespace capstan::ps {

namespace {

/// Returns the description to save. Each shard of a dynamic table is saved as a variable.
protocol::CreateShard saved_as(const Shard& shard) {
  protocol::CreateShard saved = shard.description();
  if (!saved.table) return saved;
  saved.name = io::table_part(saved.name, saved.shard);
  saved.rows = saved.shape.front() = shard.saved_rows();
  saved.first_row = 0;
  return saved;
}

/// Copies values, which a checkpoint has in the dtype of the variable.
void copy_values(const protocol::CreateShard& shard, FrozenRows& rows, std::uint64_t first,
                 std::uint64_t count, std::byte* out, std::mutex& store_mutex) {
  if (!shard.storage.int8) return rows.copy(0, first, count, out, store_mutex);
  const std::uint64_t width = protocol::width_of(shard.shape);
  std::vector<std::byte> stored(count * protocol::int8_row_bytes(width));
  rows.copy(0, first, count, stored.data(), store_mutex);
  protocol::from_int8_rows(stored, width, reinterpret_cast<float*>(out));
}

}  // namespace

StoreSnapshot::StoreSnapshot(Store& store, const protocol::SavedRows& rows) : store_(store), rows_(rows) {
  const std::lock_guard lock(store_.mutex_);
  for (auto& [key, shard] : store_.shards_) {
    shard->add_waiting_read(1);
    pending_.push_back(key);
  }
  try {
    freeze_consistent();
  } catch (...) {
    release();
    throw;
  }
}

StoreSnapshot::~StoreSnapshot() {
  const std::lock_guard lock(store_.mutex_);
  release();
}

void StoreSnapshot::release() {
  for (const auto& [variable, number] : pending_) {
    if (Shard* const shard = store_.find_or_null(variable, number)) shard->add_waiting_read(-1);
  }
  for (const FrozenShard& frozen : frozen_) {
    if (Shard* const shard = store_.find_or_null(frozen.key.first, frozen.key.second))
      shard->release(frozen.rows);
  }
}

bool StoreSnapshot::advance() {
  if (pending_.empty()) return true;
  const std::lock_guard lock(store_.mutex_);
  return freeze_consistent();
}

bool StoreSnapshot::advance_copies_rows() const {
  if (pending_.empty()) return false;
  const std::lock_guard lock(store_.mutex_);
  return std::any_of(pending_.begin(), pending_.end(), [this](const Key& key) {
    const Shard* const shard = store_.find_or_null(key.first, key.second);
    return shard != nullptr && shard->freeze_copies_rows() && shard->is_consistent();
  });
}

bool StoreSnapshot::freeze_consistent() {
  for (auto key = pending_.begin(); key != pending_.end();)
    key = freeze_if_consistent(*key) ? pending_.erase(key) : key + 1;
  return pending_.empty();
}

bool StoreSnapshot::freeze_if_consistent(const Key& key) {
  Shard* const shard = store_.find_or_null(key.first, key.second);
  if (shard == nullptr) return true;  // dropped
  if (!shard->is_consistent()) return false;
  FrozenShard frozen{key, saved_as(*shard), shard->steps(), shard->overriding_learning_rate(), nullptr};
  frozen_.reserve(frozen_.size() + 1);
  frozen.rows = shard->freeze(rows_);
  // Nothing below this line throws.
  frozen_.push_back(std::move(frozen));
  shard->add_waiting_read(-1);
  return true;
}

io::PartArray StoreSnapshot::row_numbers_of(const FrozenShard& frozen) {
  const protocol::CreateShard& d = frozen.description;
  io::PartArray numbers{.variable = d.name,
                        .component = io::kChangedRows,
                        .dtype = DType::int64,
                        .shape = {protocol::stored_shape(d.shape).front()},
                        .first_row = d.first_row,
                        .rows = d.rows,
                        .changed = frozen.rows->rows()};
  numbers.read = [rows = frozen.rows, from = d.first_row](std::uint64_t first, std::uint64_t count,
                                                          std::byte* out) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t number = from + rows->row(first + i);
      std::memcpy(out + i * sizeof(number), &number, sizeof(number));
    }
  };
  return numbers;
}

io::PartArray StoreSnapshot::array_of(const FrozenShard& frozen, std::size_t number) const {
  const protocol::CreateShard& d = frozen.description;
  const bool value = number == 0;
  io::PartArray array{.variable = d.name, .first_row = d.first_row, .rows = d.rows};
  const std::vector<std::string> slots = protocol::slots_of(d.optimizer.kind);
  if (number <= slots.size()) {
    array.component = value ? io::kValue : slots[number - 1];
    array.dtype = value ? d.dtype : protocol::slot_dtype(d.dtype);
    array.shape = protocol::stored_shape(d.shape);
  } else {  // keys or states of a table
    const bool keys = number == slots.size() + 1;
    array.component = keys ? io::kTableKeys : io::kTableStates;
    array.dtype = keys ? DType::int64 : DType::int32;
    array.shape = {d.rows};
  }
  if (rows_.since != 0) array.changed = frozen.rows->rows();
  if (!value) return array;
  array.optimizer = protocol::describe(d.optimizer);
  array.steps = frozen.steps;
  array.learning_rate = frozen.learning_rate;
  return array;
}

std::vector<std::vector<io::PartArray>> StoreSnapshot::parts(int count,
                                                             std::function<void(std::uint64_t)> before_each) {
  std::vector<std::vector<io::PartArray>> files(static_cast<std::size_t>(count));
  std::map<std::uint32_t, std::size_t> shards_seen;  // by variable
  std::sort(frozen_.begin(), frozen_.end(),
            [](const FrozenShard& a, const FrozenShard& b) { return a.key < b.key; });
  for (const FrozenShard& frozen : frozen_) {
    frozen.rows->list_rows();
    auto& arrays = files.at(shards_seen[frozen.description.variable]++);
    if (rows_.since != 0) arrays.push_back(row_numbers_of(frozen));
    for (std::size_t number = 0; number < frozen.rows->arrays(); ++number) {
      io::PartArray array = array_of(frozen, number);
      array.read = [this, rows = frozen.rows, &shard = frozen.description, number, before_each,
                    row_bytes = io::row_bytes(array.shape, array.dtype)](
                       std::uint64_t first, std::uint64_t row_count, std::byte* out) {
        if (before_each) before_each(row_count * row_bytes);
        if (number == 0) return copy_values(shard, *rows, first, row_count, out, store_.mutex_);
        rows->copy(number, first, row_count, out, store_.mutex_);
      };
      arrays.push_back(std::move(array));
    }
  }
  return files;
}

}  // namespace capstan::ps

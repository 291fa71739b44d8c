// table_shard.cpp -- adds and erases rows in groups that are journaled first.
#include "ps/shard/table_shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/first_touch.hpp"
#include "capstan/error.hpp"
#include "io/file.hpp"
#include "io/hdf5/changed_rows.hpp"
#include "protocol/row_copy.hpp"
#include "ps/durability/restore_files.hpp"
#include "ps/shard/admission_draw.hpp"
#include "ps/shard/initialize.hpp"
#include "ps/shard/shard_snapshot.hpp"
#include "transport/memory/reserved_memory.hpp"

namespace capstan::ps {
namespace {

/// Free memory of the host is checked each time rows of this many bytes have been added.
constexpr std::uint64_t kCheckedBytes = std::uint64_t{16} << 20;

/// Rows are restored in chunks of this size.
constexpr std::uint64_t kRestoredBytes = std::uint64_t{4} << 20;

/// Reads rows [first, first + count) of one array of a saved part.
void read_part(const protocol::RestoreShard& from, RestoreFiles& files, std::uint32_t array,
               std::uint64_t first, std::uint64_t count, std::uint64_t row_bytes,
               std::vector<std::byte>& out) {
  out.assign(count * row_bytes, std::byte{0});
  const std::uint64_t begin = first * row_bytes;
  const std::uint64_t end = begin + out.size();
  for (const protocol::RestorePiece& piece : from.pieces) {
    const std::uint64_t low = std::max(begin, piece.at);
    const std::uint64_t high = std::min(end, piece.at + piece.bytes);
    if (piece.array != array || low >= high) continue;
    const io::FileDescriptor& file = files.open(piece.file);
    io::read_at(file, files.path(), piece.offset + low - piece.at, out.data() + low - begin, high - low);
  }
  for (const protocol::RestoreChanges& changes : from.changes) {
    if (changes.array != array) continue;
    const io::FileDescriptor& file = files.open(changes.file);
    io::apply_changed_rows(file, files.path(), changes.rows, first, count, out.data());
  }
}

std::vector<std::byte*> slots_at(std::byte* memory, const protocol::TableLayout& layout, OptimizerKind kind) {
  std::vector<std::byte*> slots;
  for (std::size_t slot = 0; slot < protocol::slots_of(kind).size(); ++slot)
    slots.push_back(memory + layout.slot(slot));
  return slots;
}

protocol::TableLayout layout_of(const protocol::CreateShard& d) {
  return protocol::TableLayout::of(d.rows, protocol::width_of(d.shape), d.dtype, d.storage, d.optimizer.kind);
}

std::uint64_t capacity_of(const protocol::CreateShard& d) {
  const std::uint64_t spare = d.policy.when_full == WhenFull::refuse ? 0 : protocol::kSpareRows;
  return d.rows - 1 - spare;
}

}  // namespace

TableShard::TableShard(const protocol::CreateShard& description, const protocol::ShardLocation& location,
                       const Words& words, std::byte* memory, Shared shared)
    : HostShard(description, location, words,
                {memory + layout_of(description).values(),
                 slots_at(memory, layout_of(description), description.optimizer.kind)},
                std::move(shared)),
      memory_(memory),
      layout_(layout_of(description)),
      header_(*reinterpret_cast<protocol::TableHeader*>(memory)),
      index_(memory, layout_,
             [](std::byte* from, std::uint64_t bytes) {
               transport::release_memory({from, bytes});
             }),
      usage_(description.policy, capacity_of(description), header_, states()),
      filter_(memory + layout_.filter(), layout_.filter_lines(), header_.occurrences) {
  header_.rows_end = std::max<std::uint64_t>(header_.rows_end, protocol::kDefaultRow + 1);
}

std::uint64_t TableShard::stored_bytes_per_key() const noexcept {
  std::uint64_t bytes = sizeof(std::int64_t) + sizeof(std::uint32_t);
  for (std::uint32_t number = 0; number <= slots().size(); ++number) bytes += stored_bytes_per_row(number);
  return bytes;
}

bool TableShard::has_memory() {
  if (header_.rows_end < checked_rows_) return true;
  const std::uint64_t row = stored_bytes_per_key();
  const std::uint64_t rows = std::max<std::uint64_t>(kCheckedBytes / row, 1);
  try {
    check_memory_left(rows * row);
  } catch (const Error&) {
    return false;
  }
  checked_rows_ = header_.rows_end + rows;
  return true;
}

std::uint32_t TableShard::take_row() {
  if (!free_.empty()) {
    const std::uint32_t row = free_.back();
    free_.pop_back();
    return row;
  }
  if (header_.rows_end == layout_.rows() || !has_memory()) return protocol::kDefaultRow;
  return static_cast<std::uint32_t>(header_.rows_end++);
}

/// Logs the keys and states of rows before they change. Values need no log here, since only the values of
/// rows that were not in use are overwritten.
void TableShard::log_keys(std::span<const std::uint32_t> rows) {
  if (journal() == nullptr) return;
  Journal::Group group;
  group.bases[3] = memory_ + layout_.keys();
  group.bytes[3] = sizeof(std::int64_t);
  group.bases[4] = memory_ + layout_.states();
  group.bytes[4] = sizeof(std::uint32_t);
  group.rows = rows.data();
  group.count = rows.size();
  journal()->log(group);
}

void TableShard::add_bases(std::byte* (&bases)[Journal::kArrays]) const noexcept {
  bases[3] = memory_ + layout_.keys();
  bases[4] = memory_ + layout_.states();
}

void TableShard::write_initial(std::int64_t key, std::uint32_t row) {
  const protocol::CreateShard& d = description();
  initial_.resize(row_bytes());
  ps::initialize(d.initializer, d.dtype, static_cast<std::uint64_t>(key) * width(), width(), initial_.data());
  store_rows(row, initial_);
  write_initial_slots(row);
}

void TableShard::write_initial_slots(std::uint32_t row) {
  const protocol::CreateShard& d = description();
  for (std::uint32_t slot = 0; slot < slots().size(); ++slot) {
    ps::initialize({InitializerKind::constant, protocol::initial_slot_value(d.optimizer, slot), 0, 0},
                   protocol::slot_dtype(d.dtype), 0, width(), slots()[slot] + row * bytes_per_row(slot + 1));
  }
}

std::span<const std::uint32_t> TableShard::find_or_add(std::span<const std::int64_t> keys,
                                                       const protocol::PushHeader& entry) {
  if (usage_.evicts()) evict(keys.size());
  rows_.resize(keys.size());
  index_.find(keys, rows_);
  if (std::find(rows_.begin(), rows_.end(), protocol::kDefaultRow) != rows_.end()) add_missing(keys, entry);
  if (usage_.evicts()) {
    before_change(rows_);
    usage_.count(rows_, entry.first_part != 0);
  }
  return rows_;
}

void TableShard::evict(std::size_t keys_of_entry) {
  constexpr std::size_t kCatchUp = 64;
  free_.insert(free_.end(), evicted_.begin(), evicted_.end());
  evicted_.clear();
  std::array<std::uint32_t, Journal::kGroupRows> rows{};
  std::size_t left = keys_of_entry + kCatchUp;
  for (std::uint64_t to_examine = usage_.rows_to_examine(); to_examine > 0 && left > 0;) {
    const std::size_t count =
        usage_.find_old(std::span(rows).first(std::min(left, rows.size())), &to_examine);
    evict_rows({rows.data(), count});
    left -= count;
  }
  left = std::min<std::size_t>(usage_.excess(), left);
  while (left > 0) {
    const std::size_t count = std::min(left, rows.size());
    for (std::size_t i = 0; i < count; ++i) {
      rows[i] = usage_.choose({rows.data(), i});
      __builtin_prefetch(&keys()[rows[i]]);
    }
    evict_rows({rows.data(), count});
    left -= count;
  }
}

void TableShard::evict_rows(std::span<const std::uint32_t> rows) {
  for (const std::uint32_t row : rows) index_.prefetch(protocol::hash_of(keys()[row]));
  for (const std::uint32_t row : rows) index_.erase(keys()[row], protocol::hash_of(keys()[row]));
  free_rows(rows);
  header_.evicted += rows.size();
  evicted_.insert(evicted_.end(), rows.begin(), rows.end());
}

void TableShard::free_rows(std::span<const std::uint32_t> rows) {
  before_change(rows);
  log_keys(rows);
  for (const std::uint32_t row : rows) states()[row] = 0;
  header_.keys -= rows.size();
}

bool TableShard::admits(std::int64_t key, const protocol::PushHeader& entry) {
  const protocol::TablePolicy& policy = description().policy;
  if (policy.admit_probability < 1) return admission_draw(key, entry) < policy.admit_probability;
  return policy.admit_after <= 1 || filter_.count(protocol::hash_of(key)) >= policy.admit_after;
}

void TableShard::add_missing(std::span<const std::int64_t> keys, const protocol::PushHeader& entry) {
  const bool admits_all = entry.op != protocol::RowOp::gradient;
  std::array<std::int64_t, Journal::kGroupRows> added{};
  std::array<std::uint32_t, Journal::kGroupRows> rows{};
  std::size_t count = 0;
  const auto add_group = [&] {
    before_change({rows.data(), count});
    log_keys({rows.data(), count});
    for (std::size_t i = 0; i < count; ++i) {
      write_initial(added[i], rows[i]);
      this->keys()[rows[i]] = added[i];
      states()[rows[i]] = usage_.state_of_new_row();
      if (!index_.insert(added[i], protocol::hash_of(added[i]), rows[i])) {
        states()[rows[i]] = 0;
        free_.push_back(rows[i]);
        ++header_.refused;
        continue;
      }
      ++header_.keys;
      ++header_.inserted;
    }
    count = 0;
  };
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (rows_[i] != protocol::kDefaultRow) continue;
    const auto end = added.begin() + static_cast<std::ptrdiff_t>(count);
    if (std::find(added.begin(), end, keys[i]) != end || find(keys[i]) != protocol::kDefaultRow) continue;
    if (!admits_all && !admits(keys[i], entry)) {
      ++header_.not_admitted;
      continue;
    }
    rows[count] = take_row();
    if (rows[count] == protocol::kDefaultRow) {
      ++header_.refused;
      continue;
    }
    added[count++] = keys[i];
    if (count == added.size()) add_group();
  }
  add_group();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (rows_[i] == protocol::kDefaultRow) rows_[i] = find(keys[i]);
  }
}

void TableShard::erase(std::span<const std::int64_t> keys) {
  std::array<std::uint32_t, Journal::kGroupRows> rows{};
  std::size_t count = 0;
  const auto erase_group = [&] {
    free_rows({rows.data(), count});
    free_.insert(free_.end(), rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count));
    header_.erased += count;
    count = 0;
  };
  for (const std::int64_t key : keys) {
    const std::uint64_t hash = protocol::hash_of(key);
    const std::uint32_t row = index_.find(key, hash);
    if (row == protocol::kDefaultRow) continue;
    index_.erase(key, hash);
    rows[count++] = row;
    if (count == rows.size()) erase_group();
  }
  erase_group();
}

std::vector<std::uint32_t> TableShard::find_rows(std::span<const std::int64_t> keys) const {
  std::vector<std::uint32_t> rows(keys.size());
  index_.find(keys, rows);
  return rows;
}

std::vector<std::uint8_t> TableShard::contains(std::span<const std::int64_t> keys) const {
  std::vector<std::uint8_t> found(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) found[i] = find(keys[i]) != protocol::kDefaultRow ? 1 : 0;
  return found;
}

std::uint64_t TableShard::gather_keys(std::span<const std::int64_t> keys, MissingKeys missing,
                                      std::byte* out) const {
  const std::vector<std::uint32_t> rows = find_rows(keys);
  const protocol::CreateShard& d = description();
  if (missing == MissingKeys::error) {
    const auto found = std::find(rows.begin(), rows.end(), protocol::kDefaultRow);
    if (found != rows.end()) throw protocol::no_such_key(keys[found - rows.begin()], d.name);
  }
  gather(rows, out);
  std::uint64_t not_found = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (rows[i] != protocol::kDefaultRow) continue;
    ++not_found;
    if (missing == MissingKeys::initial) {
      ps::initialize(d.initializer, d.dtype, static_cast<std::uint64_t>(keys[i]) * width(), width(),
                     out + i * row_bytes());
      round_as_stored({out + i * row_bytes(), row_bytes()});
    } else if (missing == MissingKeys::zeros) {
      std::memset(out + i * row_bytes(), 0, row_bytes());
    }
  }
  return not_found;
}

protocol::TableStatistics TableShard::statistics() const noexcept {
  const std::uint64_t row = stored_bytes_per_key();
  std::uint64_t lines = 0;
  for (const protocol::SubIndex& sub : header_.sub_indexes) lines += std::uint64_t{1} << sub.level;
  constexpr std::uint64_t kSampledKeys = 1024;
  std::uint64_t sampled_keys = 0, sampled_lines = 0;
  const std::uint64_t step = std::max<std::uint64_t>(1, header_.rows_end / kSampledKeys);
  for (std::uint64_t at = protocol::kDefaultRow + 1; at < header_.rows_end; at += step) {
    if ((states()[at] & protocol::kRowInUse) == 0) continue;
    ++sampled_keys;
    sampled_lines += index_.lines_to(keys()[at], protocol::hash_of(keys()[at]));
  }
  return {.keys = header_.keys,
          .most_keys = usage_.capacity(),
          .inserted = header_.inserted,
          .erased = header_.erased,
          .refused = header_.refused,
          .evicted = header_.evicted,
          .not_admitted = header_.not_admitted,
          .growths = header_.growths,
          .row_bytes = header_.rows_end * row,
          .index_bytes = lines * sizeof(protocol::IndexLine),
          .sampled_keys = sampled_keys,
          .sampled_lines = sampled_lines};
}

protocol::ListedKeys TableShard::list(std::uint64_t first_row, std::uint64_t count) const {
  protocol::ListedKeys listed{header_.rows_end, {}};
  const std::uint64_t end = std::min(header_.rows_end, first_row + std::min(count, layout_.rows()));
  for (std::uint64_t row = std::max<std::uint64_t>(first_row, 1); row < end; ++row) {
    if ((states()[row] & protocol::kRowInUse) != 0) listed.keys.push_back(keys()[row]);
  }
  return listed;
}

std::uint64_t TableShard::bytes_per_row(std::uint32_t array) const noexcept {
  if (array <= slots().size()) return HostShard::bytes_per_row(array);
  return array == slots().size() + 1 ? sizeof(std::int64_t) : sizeof(std::uint32_t);
}

std::shared_ptr<FrozenRows> TableShard::freeze_rows(std::optional<TouchedRows> touched) {
  std::vector<ShardSnapshot::Array> arrays;
  for (std::uint32_t number = 0; number <= slots().size(); ++number)
    arrays.push_back({array(number), stored_bytes_per_row(number)});
  arrays.push_back({memory_ + layout_.keys(), sizeof(std::int64_t)});
  arrays.push_back({memory_ + layout_.states(), sizeof(std::uint32_t)});
  auto snapshot = std::make_shared<ShardSnapshot>(arrays, saved_rows(), std::move(touched), chunks());
  attach(snapshot);
  return snapshot;
}

void TableShard::clear() {
  index_.clear();
  transport::release_memory({memory_ + layout_.filter(), layout_.bytes() - layout_.filter()});
  std::fill_n(states(), header_.rows_end, 0);
  free_.clear();
  evicted_.clear();
  header_.rows_end = protocol::kDefaultRow + 1;
  header_.keys = header_.inserted = header_.erased = header_.refused = 0;
  header_.evicted = header_.not_admitted = 0;
}

/// Reads the part in chunks of all arrays, and adds the rows whose keys belong to this shard.
void TableShard::restore_rows(const protocol::RestoreShard& from, RestoreFiles& files) {
  if (from.table->first) clear();
  const auto keys_array = static_cast<std::uint32_t>(slots().size() + 1);
  std::uint64_t row_of_all = 0;
  for (std::uint32_t number = 0; number <= keys_array + 1; ++number) row_of_all += bytes_per_row(number);
  const std::uint64_t step = std::max<std::uint64_t>(kRestoredBytes / row_of_all, 1);
  std::vector<std::vector<std::byte>> chunk(keys_array + 2);
  for (std::uint64_t first = 0; first < from.table->rows; first += step) {
    const std::uint64_t count = std::min(step, from.table->rows - first);
    for (std::uint32_t number = 0; number < chunk.size(); ++number)
      read_part(from, files, number, first, count, bytes_per_row(number), chunk[number]);
    const auto* const keys = reinterpret_cast<const std::int64_t*>(chunk[keys_array].data());
    const auto* const states = reinterpret_cast<const std::uint32_t*>(chunk[keys_array + 1].data());
    for (std::uint64_t i = 0; i < count; ++i) {
      if (first + i == protocol::kDefaultRow) {
        restore_row(protocol::kDefaultRow, chunk, i);
      } else if ((states[i] & protocol::kRowInUse) != 0) {
        add_restored(from, keys[i], states[i], chunk, i);
      }
    }
  }
}

/// Copies the values and slots of a row of a chunk.
void TableShard::restore_row(std::uint32_t row, const std::vector<std::vector<std::byte>>& chunk,
                             std::uint64_t at) {
  store_rows(row, std::span(chunk[0]).subspan(at * row_bytes(), row_bytes()));
  for (std::uint32_t number = 1; number <= slots().size(); ++number) {
    const std::uint64_t bytes = bytes_per_row(number);
    std::memcpy(array(number) + row * bytes, chunk[number].data() + at * bytes, bytes);
  }
}

void TableShard::add_restored(const protocol::RestoreShard& from, std::int64_t key, std::uint32_t state,
                              const std::vector<std::vector<std::byte>>& chunk, std::uint64_t at) {
  const std::uint64_t hash = protocol::hash_of(key);
  if (protocol::shard_of_hash(hash, from.table->shards) != description().shard) return;
  const std::uint32_t row = take_row();
  const auto fail = [&] {
    throw Error(
        Code::resource_exhausted,
        fmt::format("cannot restore dynamic table \"{}\": a shard has memory or rows for {} keys only; "
                    "raise max_keys, or use more ps",
                    description().name, header_.keys));
  };
  if (row == protocol::kDefaultRow) fail();
  restore_row(row, chunk, at);
  this->keys()[row] = key;
  if (!index_.insert(key, hash, row)) fail();  // the row stays unused
  states()[row] = usage_.state_of_restored_row(state);
  ++header_.keys;
}

void TableShard::rebuild() {
  index_.clear();
  free_.clear();
  evicted_.clear();
  header_.keys = 0;
  for (std::uint64_t row = header_.rows_end; row-- > 1;) {
    if ((states()[row] & protocol::kRowInUse) == 0) {
      free_.push_back(static_cast<std::uint32_t>(row));
      continue;
    }
    if (index_.insert(keys()[row], protocol::hash_of(keys()[row]), static_cast<std::uint32_t>(row))) {
      ++header_.keys;
    } else {  // the sub-index is full
      states()[row] = 0;
      free_.push_back(static_cast<std::uint32_t>(row));
      ++header_.refused;
    }
  }
}

}  // namespace capstan::ps

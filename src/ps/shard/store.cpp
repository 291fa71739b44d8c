// store.cpp -- finds shards, applies pushes and serves reads.
#include "ps/shard/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "protocol/bfloat16_values.hpp"
#include "ps/update/sum_of_pushes.hpp"

namespace capstan::ps {
namespace {

/// Returns true if an operation on keys that were not added must leave the default row unchanged.
bool drops_default_row(const TableShard& table, protocol::RowOp op) {
  return op != protocol::RowOp::gradient || !table.has_trained_default_row();
}

}  // namespace

Store::Store(transport::Fabric& fabric, std::uint64_t slab_bytes, int ps_index, UpdateGroups::Publish publish,
             Count count, PersistentState* persistent, SharedRegions* regions,
             const ClosureLedger::Capacity& ledger, int threads)
    : persistent_(persistent),
      ps_index_(ps_index),
      heap_(
          [&fabric, persistent, regions](std::uint64_t bytes) {
            if (persistent != nullptr) return persistent->allocate(bytes);
            return regions != nullptr ? regions->allocate(bytes) : fabric.allocate(bytes);
          },
          [&fabric, persistent, regions](std::uint64_t bytes) {
            if (persistent != nullptr) return persistent->reserve(bytes);
            return regions != nullptr ? regions->reserve(bytes) : fabric.reserve(bytes);
          },
          slab_bytes),
      device_(*this, ps_index),
      factory_(heap_, device_.context(), persistent, ps_index, threads),
      groups_([this](std::span<const HeldPush* const> pushes, int workers) { apply_sum(pushes, workers); },
              [this, publish = std::move(publish)](std::uint32_t group, std::uint64_t steps) {
                device_.context().settle();  // other processes' kernels read the rows once they see the step
                publish(group, steps);
              }),
      count_(std::move(count)),
      ledger_(ledger, persistent == nullptr ? std::span<std::byte>() : persistent->ledger()) {}

protocol::ShardLocation Store::create(const protocol::CreateShard& request, bool restored) {
  const std::lock_guard lock(mutex_);
  if (const Shard* there = find_or_null(request.variable, request.shard)) {
    // A client that got no reply from the previous process repeats its request.
    if (persistent_ != nullptr && to_bytes(there->description()) == to_bytes(request))
      return there->location();
    throw Error(Code::already_exists,
                fmt::format("cannot create shard {} of variable {} (\"{}\"): it already exists on ps {}",
                            request.shard, request.variable, request.name, ps_index_));
  }
  const auto entry = shards_.try_emplace({request.variable, request.shard}).first;
  try {
    entry->second = factory_.make(request, restored);
  } catch (...) {
    shards_.erase(entry);
    throw;
  }
  return entry->second->location();
}

void Store::drop(std::uint32_t variable) {
  const std::lock_guard lock(mutex_);
  const auto begin = shards_.lower_bound({variable, 0});
  auto end = begin;
  for (; end != shards_.end() && end->first.first == variable; ++end) end->second->complete_snapshots();
  if (begin == end) return;
  shards_.erase(begin, end);
  factory_.reclaim(variable);
}

std::vector<protocol::ListedShard> Store::list() {
  const std::lock_guard lock(mutex_);
  std::vector<protocol::ListedShard> all;
  for (const auto& [key, shard] : shards_) all.push_back({shard->description(), shard->location()});
  return all;
}

Shard* Store::find_or_null(std::uint32_t variable, std::uint32_t shard) const {
  const auto found = shards_.find({variable, shard});
  return found == shards_.end() ? nullptr : found->second.get();
}

Shard& Store::find(std::uint32_t variable, std::uint32_t shard) const {
  if (Shard* const found = find_or_null(variable, shard)) return *found;
  throw Error(Code::not_found,
              fmt::format("shard {} of variable {} does not exist on ps {}", shard, variable, ps_index_));
}

void Store::apply(const protocol::PushHeader& header, std::span<const std::uint32_t> numbers,
                  const std::byte* values) {
  const std::lock_guard lock(mutex_);
  Shard* const shard = find_or_null(header.variable, header.shard);
  if (persistent_ != nullptr) {
    persistent_->begin(header, protocol::changes_rows(header.kind) && shard != nullptr ? shard->steps() : 0,
                       ledger_.entered(header));
  }
  if (header.kind == protocol::PushKind::step) {
    return groups_.end_step(header.variable, static_cast<int>(header.rank), header.first_row);
  }
  if (header.kind == protocol::PushKind::count) {
    // Other processes' kernels read the rows once they see the counter.
    device_.context().settle();
    if (ledger_.enter(header)) count_(header.variable, header.first_row);
    return;
  }
  if (header.kind == protocol::PushKind::learning_rate) {
    if (ledger_.enter(header)) set_learning_rate(header);
    return;
  }
  if (shard == nullptr) return log_misfit(header);
  if (header.bfloat16_values == 0) return apply_values(*shard, header, numbers, values);
  if (const auto widened = widen(header, *shard, values))
    return apply_values(*shard, *widened, numbers, reinterpret_cast<const std::byte*>(floats_.data()));
  log_misfit(header);
}

/// Converts the values of an entry to `floats_`, and returns the header of the entry that they make. Returns
/// nothing if the entry does not fit the shard.
std::optional<protocol::PushHeader> Store::widen(const protocol::PushHeader& header, const Shard& shard,
                                                 const std::byte* values) {
  const auto bytes_with = [&](std::uint64_t row_bytes) {
    return protocol::entry_bytes(header.kind, header.rows, row_bytes);
  };
  if (shard.description().dtype != DType::float32 || header.in_staging_buffer != 0 ||
      header.op != protocol::RowOp::gradient || header.bytes != bytes_with(shard.row_bytes() / 2)) {
    return std::nullopt;
  }
  floats_.resize(header.rows * shard.width());
  protocol::from_bfloat16({reinterpret_cast<const bfloat16*>(values), floats_.size()}, floats_.data());
  protocol::PushHeader widened = header;
  widened.bfloat16_values = 0;
  widened.bytes = bytes_with(shard.row_bytes());
  return widened;
}

/// Applies an entry whose values have the dtype of the shard.
void Store::apply_values(Shard& shard, const protocol::PushHeader& header,
                         std::span<const std::uint32_t> rows, const std::byte* values) {
  if (header.kind == protocol::PushKind::keyed) return apply_keyed(shard, header, rows, values);
  if (!shard.fits(header, rows, values)) return log_misfit(header);
  // Gradients of a dynamic table come by key.
  if (shard.description().table && header.op == protocol::RowOp::gradient) return log_misfit(header);
  const std::uint32_t group = shard.description().group;
  if (group != 0 && header.op == protocol::RowOp::gradient &&
      groups_.holds_back(group, static_cast<int>(header.rank))) {
    return groups_.hold(group, header, rows, {values, header.rows * shard.row_bytes()});
  }
  if (ledger_.enter(header)) return apply_to(shard, header, rows, values);
  shard.skip(header);
}

void Store::log_misfit(const protocol::PushHeader& header) const {
  log::error("dropped a push of rank {} to variable {} shard {}: {} rows do not fit the shard on ps {}",
             header.rank, header.variable, header.shard, header.rows, ps_index_);
}

/// Applies an entry that names keys by converting it to an entry that names rows.
void Store::apply_keyed(Shard& shard, const protocol::PushHeader& header,
                        std::span<const std::uint32_t> words, const std::byte* values) {
  auto* const table = dynamic_cast<TableShard*>(&shard);
  const bool has_values = protocol::has_values(header.op);
  if (table == nullptr || header.op > protocol::RowOp::erase ||
      words.size() != 2 * std::size_t{header.rows} ||
      header.bytes != protocol::entry_bytes(header.kind, header.rows, has_values ? table->row_bytes() : 0)) {
    return log_misfit(header);
  }
  const std::span<const std::int64_t> keys = protocol::keys_of(words);
  const std::uint32_t group = table->description().group;
  if (group != 0 && header.op == protocol::RowOp::gradient &&
      groups_.holds_back(group, static_cast<int>(header.rank))) {
    return groups_.hold(group, header, words, {values, header.rows * table->row_bytes()});
  }
  if (!ledger_.enter(header)) return shard.skip(header);
  if (header.op == protocol::RowOp::erase) {
    table->erase(keys);
    return shard.skip(header);
  }
  std::span<const std::uint32_t> rows = table->find_or_add(keys, header);
  if (!has_values) return shard.skip(header);
  protocol::PushHeader of_rows = header;
  of_rows.kind = protocol::PushKind::sparse;
  if (drops_default_row(*table, header.op) &&
      std::find(rows.begin(), rows.end(), protocol::kDefaultRow) != rows.end()) {
    accepted_.take(rows, values, table->row_bytes());
    rows = accepted_.rows;
    values = accepted_.values.data();
    of_rows.rows = static_cast<std::uint32_t>(rows.size());
  }
  apply_to(*table, of_rows, rows, values);
}

/// Replaces the keys of held pushes by their rows, after adding the keys that do not exist. Held pushes name
/// keys because an erased or evicted row may belong to another key when the step ends.
std::vector<HeldPush> Store::pushes_to_rows(TableShard& table, std::span<const HeldPush* const> pushes) {
  std::vector<std::int64_t> keys;
  for (const HeldPush* push : pushes) {
    const std::span<const std::int64_t> of_push = protocol::keys_of(push->rows);
    keys.insert(keys.end(), of_push.begin(), of_push.end());
  }
  // A step may have any number of keys, but a table has spare rows only for the keys of one entry.
  constexpr std::size_t kKeysAtATime = 4096;
  // The step counts as one push, whatever workers took part in it.
  protocol::PushHeader entry;
  entry.call = static_cast<std::uint32_t>(table.steps());
  for (std::span<const std::int64_t> left(keys); !left.empty();) {
    const std::size_t count = std::min(left.size(), kKeysAtATime);
    (void)table.find_or_add(left.first(count), entry);
    entry.first_part = 0;
    left = left.subspan(count);
  }
  const std::vector<std::uint32_t> all_rows =
      table.find_rows(keys);  // later keys may have evicted earlier ones
  const std::span<const std::uint32_t> rows(all_rows);
  const bool drops = drops_default_row(table, protocol::RowOp::gradient);
  std::vector<HeldPush> out;
  std::size_t first = 0;
  for (const HeldPush* push : pushes) {
    const std::span<const std::uint32_t> of_push = rows.subspan(first, push->header.rows);
    first += of_push.size();
    HeldPush& by_row = out.emplace_back();
    by_row.header = push->header;
    by_row.header.kind = protocol::PushKind::sparse;
    if (drops) {
      accepted_.take(of_push, push->values.data(), table.row_bytes());
      by_row.rows = accepted_.rows;
      by_row.values = accepted_.values;
    } else {
      by_row.rows.assign(of_push.begin(), of_push.end());
      by_row.values = push->values;
    }
    by_row.header.rows = static_cast<std::uint32_t>(by_row.rows.size());
  }
  return out;
}

/// Copies the rows and values of an entry, except those of keys that were not added.
void Store::AcceptedRows::take(std::span<const std::uint32_t> from, const std::byte* bytes,
                               std::uint64_t row_bytes) {
  rows.clear();
  values.resize(from.size() * row_bytes);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == protocol::kDefaultRow) continue;
    if (row_bytes != 0)
      std::memcpy(values.data() + rows.size() * row_bytes, bytes + i * row_bytes, row_bytes);
    rows.push_back(from[i]);
  }
}

void Store::set_learning_rate(const protocol::PushHeader& header) {
  try {
    Shard& shard = find(header.variable, header.shard);
    protocol::CreateShard changed = shard.description();
    changed.optimizer.learning_rate = std::bit_cast<double>(header.first_row);
    changed.optimizer.schedule = {};
    protocol::check_optimizer(changed.name, changed.dtype, changed.optimizer);
    shard.override_learning_rate(changed.optimizer.learning_rate);
  } catch (const Error& error) {
    log::error("dropped a learning rate set by rank {}: {}", header.rank, error.what());
  }
}

void Store::count(const protocol::PushHeader& header, const Shard& shard) {
  if (header.first_part != 0) ++statistics_.pushes;
  statistics_.rows_pushed += header.rows;
  statistics_.bytes_pushed += header.rows * shard.row_bytes();
}

void Store::apply_to(Shard& shard, const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                     const std::byte* values) {
  count(header, shard);
  shard.apply(header, rows, values);
}

void Store::apply_sum(std::span<const HeldPush* const> pushes, int workers) {
  Shard& shard = find(pushes.front()->header.variable, pushes.front()->header.shard);
  std::vector<HeldPush> by_row;
  std::vector<const HeldPush*> pointers;
  if (auto* const table = dynamic_cast<TableShard*>(&shard)) {
    by_row = pushes_to_rows(*table, pushes);
    for (const HeldPush& push : by_row) pointers.push_back(&push);
    pushes = pointers;
  }
  const std::uint32_t group = shard.description().group;
  const HeldPush sum = sum_of(pushes, shard.description().dtype, shard.width(), shard.rows(),
                              groups_.averages(group) ? workers : 1);
  apply_to(shard, sum.header, sum.rows, sum.values.data());
}

bool Store::ready(const protocol::PushHeader& header) {
  // Entries of a push that has begun must pass: the shard becomes consistent only with the last of them.
  if (header.first_part == 0 || !protocol::changes_rows(header.kind)) return true;
  const std::lock_guard lock(mutex_);
  const Shard* const shard = find_or_null(header.variable, header.shard);
  return shard == nullptr || !shard->has_waiting_reads();
}

void Store::abandon(std::uint32_t variable, std::uint32_t shard) {
  const std::lock_guard lock(mutex_);
  if (Shard* const found = find_or_null(variable, shard)) found->abandon();
}

void Store::settle() {
  if (!unsettled()) return;
  const std::lock_guard lock(mutex_);
  device_.context().settle();
}

void Store::create_group(const protocol::CreateGroup& request) {
  const std::lock_guard lock(mutex_);
  if (persistent_ != nullptr) persistent_->append(PersistentState::Record::group, to_bytes(request));
  groups_.create(request);
}

void Store::restart_group(std::uint32_t group) {
  const std::lock_guard lock(mutex_);
  groups_.restart(group);
}

protocol::GroupClocks Store::clocks(std::uint32_t group) {
  const std::lock_guard lock(mutex_);
  return groups_.clocks(group);
}

void Store::add_worker(int rank) {
  const std::lock_guard lock(mutex_);
  groups_.join(rank);
}

void Store::remove_worker(int rank) {
  const std::lock_guard lock(mutex_);
  groups_.remove(rank);
  ledger_.close(rank);
}

TableShard& Store::find_table(std::uint32_t variable, std::uint32_t shard) const {
  if (auto* const table = dynamic_cast<TableShard*>(&find(variable, shard))) return *table;
  throw Error(Code::invalid_argument,
              fmt::format("variable {} is not a dynamic table on ps {}", variable, ps_index_));
}

protocol::TableStatistics Store::table_statistics(const protocol::ShardOfTable& of) {
  const std::lock_guard lock(mutex_);
  return find_table(of.variable, of.shard).statistics();
}

std::vector<std::uint8_t> Store::find_keys(const protocol::FindKeys& request) {
  const std::lock_guard lock(mutex_);
  return find_table(request.variable, request.shard).contains(request.keys);
}

protocol::ListedKeys Store::list_keys(const protocol::ListKeys& request) {
  const std::lock_guard lock(mutex_);
  return find_table(request.variable, request.shard).list(request.first_row, request.rows);
}

void Store::gather_keys(const RowsView& from, std::span<const std::int64_t> keys, MissingKeys missing,
                        std::byte* out) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t not_found =
      dynamic_cast<const TableShard&>(*from.shard).gather_keys(keys, missing, out);
  statistics_.keys.add({keys.size() - not_found, not_found});
}

Store::RowsView Store::view(std::uint32_t variable, std::uint32_t shard) {
  const std::lock_guard lock(mutex_);
  const Shard& found = find(variable, shard);
  return {found.host_values(), found.rows(), found.row_bytes(), shards_.at({variable, shard})};
}

void Store::gather(const RowsView& from, std::span<const std::uint32_t> rows, std::byte* out) {
  const std::lock_guard lock(mutex_);
  from.shard->gather(rows, out);
}

void Store::gather(const RowsView& from, std::uint64_t first_byte, std::span<std::byte> out) {
  const std::lock_guard lock(mutex_);
  from.shard->gather(first_byte, out);
}

bool Store::is_consistent(std::uint32_t variable, std::uint32_t shard) {
  const std::lock_guard lock(mutex_);
  return find(variable, shard).is_consistent();
}

void Store::add_waiting_read(std::uint32_t variable, std::uint32_t shard, int count) {
  const std::lock_guard lock(mutex_);
  if (Shard* const found = find_or_null(variable, shard)) found->add_waiting_read(count);
}

void Store::count_sent(std::uint32_t variable, std::uint32_t shard, std::uint64_t rows) {
  const std::lock_guard lock(mutex_);
  statistics_.rows_sent += rows;
  if (Shard* const found = find_or_null(variable, shard)) found->count_sent(rows);
}

protocol::PsStatistics Store::statistics() {
  const std::lock_guard lock(mutex_);
  statistics_.heap_bytes = heap_.bytes();
  statistics_.gpu_bytes = 0;
  for (const auto& [key, shard] : shards_) statistics_.gpu_bytes += shard->device_bytes();
  return statistics_;
}

protocol::PsReport Store::report() {
  protocol::PsReport report;
  report.statistics = statistics();
  const std::lock_guard lock(mutex_);
  report.shards = shards_.size();
  for (const auto& [key, shard] : shards_) {
    if (shard->rows_moved() > report.hottest.rows)
      report.hottest = {shard->description().name, shard->description().shard, shard->rows_moved()};
    if (const auto* table = dynamic_cast<const TableShard*>(shard.get()))
      report.tables.push_back({shard->description().name, table->statistics()});
  }
  for (const auto& [id, clocks] : groups_.all_clocks()) report.groups.push_back({id, clocks});
  return report;
}

}  // namespace capstan::ps

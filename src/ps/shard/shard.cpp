// shard.cpp -- bookkeeping of pushes, snapshots and restores, independent of where rows are stored.
#include "ps/shard/shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capstan/error.hpp"
#include "ps/shard/shard_snapshot.hpp"

namespace capstan::ps {

Shard::Shard(protocol::CreateShard description, const protocol::ShardLocation& location, const Words& words)
    : description_(std::move(description)),
      location_(location),
      width_(protocol::width_of(description_.shape)),
      words_(words) {}

Shard::~Shard() = default;

std::uint64_t Shard::bytes_per_row(std::uint32_t array) const noexcept {
  return array == 0 ? row_bytes() : width_ * size_of(protocol::slot_dtype(description_.dtype));
}

bool Shard::fits(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                 const std::byte* values) const {
  const bool sparse = header.kind == protocol::PushKind::sparse;
  if (!sparse && header.kind != protocol::PushKind::dense) return false;
  if (header.op > protocol::RowOp::max) return false;
  // Rejects a client that assumes a different row width.
  const bool staged = header.in_staging_buffer != 0;
  const std::uint64_t bytes = staged ? protocol::entry_bytes_in_staging_buffer(header.kind, header.rows)
                                     : protocol::entry_bytes(header.kind, header.rows, row_bytes());
  if (header.bytes != bytes) return false;
  if (staged && !is_staged(header, values)) return false;
  const std::uint64_t have = description_.rows;
  if (!sparse) return header.first_row <= have && header.rows <= have - header.first_row;
  if (rows.size() != header.rows) return false;
  // No early exit, so that the compiler vectorizes the loop.
  std::uint32_t largest = 0;
  for (const std::uint32_t row : rows) largest = std::max(largest, row);
  return largest < have;
}

/// If the process is killed between the two stores, the rate is not set, and its entry is applied again.
void Shard::override_learning_rate(std::optional<double> rate) noexcept {
  if (rate) words_.rate->rate = *rate;
  signal_fence();
  words_.rate->is_set = rate ? 1 : 0;
}

double Shard::learning_rate() const noexcept {
  return overriding_learning_rate().value_or(learning_rate_after(steps() - 1, description_.optimizer));
}

void Shard::before_change(const protocol::PushHeader& header, std::span<const std::uint32_t> rows) {
  if (header.kind == protocol::PushKind::sparse) return before_change(rows);
  for (const auto& snapshot : snapshots_) snapshot->preserve(header.first_row, header.rows);
  if (touched_) touched_->add(header.first_row, header.rows);
}

void Shard::before_change(std::span<const std::uint32_t> rows) {
  for (const auto& snapshot : snapshots_) snapshot->preserve(rows);
  if (touched_) touched_->add(rows);
}

void Shard::count(const protocol::PushHeader& header) noexcept {
  if (header.first_part != 0 && header.op == protocol::RowOp::gradient) ++*words_.steps;
  count_part(header);
  rows_moved_ += header.rows;
}

void Shard::count_part(const protocol::PushHeader& header) noexcept {
  const bool first = header.first_part != 0;
  const bool last = header.last_part != 0;
  if (first != last) unfinished_ = std::max(0, unfinished_ + (first ? 1 : -1));
}

void Shard::skip(const protocol::PushHeader& header) {
  const WriteGuard guard(*this);
  count_part(header);
}

void Shard::abandon() {
  if (unfinished_ == 0) return;
  const WriteGuard guard(*this);
  --unfinished_;
}

std::shared_ptr<FrozenRows> Shard::freeze(const protocol::SavedRows& saved) {
  std::optional<TouchedRows> touched;
  const std::uint64_t rows = saved_rows();
  if (saved.since != 0 && touched_ && touched_->mark() == saved.since && touched_->rows() == rows)
    touched = touched_;
  std::optional<TouchedRows> next;
  if (saved.mark != 0) next.emplace(saved.mark, rows);
  auto frozen = freeze_rows(std::move(touched));
  // Nothing below this line allocates memory.
  if (next) touched_ = std::move(next);
  return frozen;
}

void Shard::release(const std::shared_ptr<FrozenRows>& snapshot) { std::erase(snapshots_, snapshot); }

void Shard::complete_snapshots() {
  for (const auto& snapshot : snapshots_) snapshot->preserve_all();
}

/// Prevents writes beyond the arrays if the slots in the manifest differ from those of the optimizer.
void Shard::check_bounds(const protocol::RestoreShard& from) const {
  const auto refuse_unless = [this](bool fits) {
    if (!fits)
      throw Error(
          Code::data_loss,
          fmt::format("cannot restore \"{}\": the row size in the checkpoint differs from that of the "
                      "variable",
                      description_.name));
  };
  const std::uint64_t rows = from.table ? from.table->rows : description_.rows;
  for (const protocol::RestorePiece& piece : from.pieces) {
    const std::uint64_t all = rows * bytes_per_row(piece.array);
    refuse_unless(piece.at <= all && piece.bytes <= all - piece.at);
  }
  for (const protocol::RestoreChanges& changes : from.changes)
    refuse_unless(changes.rows.row_bytes == bytes_per_row(changes.array));
}

void Shard::restore(const protocol::RestoreShard& from, RestoreFiles& files) {
  complete_snapshots();
  if (touched_) touched_->add_all();
  check_bounds(from);
  const WriteGuard guard(*this);  // a consistent read sees the shard either before or after the restore
  restore_rows(from, files);
  set_steps(from.steps);
  override_learning_rate(from.learning_rate);
}

void Shard::resume(int unfinished) noexcept {
  unfinished_ = unfinished;
  const std::atomic_ref<std::uint64_t> version(*words_.version);
  const std::uint64_t even = version.load(std::memory_order_relaxed) / 2 * 2 + 2;
  version.store(is_consistent() ? even : even + 1, std::memory_order_release);
}

}  // namespace capstan::ps

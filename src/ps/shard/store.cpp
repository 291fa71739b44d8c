// store.cpp -- creating, updating and reading shards.
#include "ps/shard/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/log.hpp"
#include "base/with_type.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "protocol/row_copy.hpp"
#include "ps/shard/initialize.hpp"
#include "ps/shard/shard_writing.hpp"
#include "ps/update/kernels.hpp"
#include "ps/update/row_ops.hpp"
#include "ps/update/sum_of_pushes.hpp"
#include "ps/update/update_in_groups.hpp"

namespace capstan::ps {
namespace {

void fill(DType dtype, double value, std::uint64_t elements, void* out) {
  initialize({InitializerKind::constant, value, 0, 0}, dtype, 0, elements, out);
}

/// What the coordinator has checked as well: memory is laid out by these numbers.
void check_size(const protocol::CreateShard& request) {
  const std::uint64_t all = protocol::rows_of(request.shape);
  protocol::check_bytes(request.name, request.dtype, request.shape, request.optimizer.kind);
  protocol::check_shard_rows(request.name, request.shard, request.rows, all);
  if (request.first_row <= all && request.rows <= all - request.first_row) return;
  throw Error(Code::invalid_argument,
              fmt::format("variable \"{}\": shard {} has {} rows from row {} on, expected rows among {}",
                          request.name, request.shard, request.rows, request.first_row, all));
}

}  // namespace

Store::Store(transport::Fabric& fabric, std::uint64_t slab_bytes, int ps_index, UpdateGroups::Publish publish,
             Count count, PersistentState* kept, SharedRegions* regions,
             const ClosureLedger::Capacity& ledger)
    : kept_(kept),
      heap_(
          [&fabric, kept, regions](std::uint64_t bytes) {
            if (kept != nullptr) return kept->allocate(bytes);
            return regions != nullptr ? regions->allocate(bytes) : fabric.allocate(bytes);
          },
          slab_bytes),
      ps_index_(ps_index),
      groups_(
          [this](std::span<const HeldPush* const> pushes, int workers) { apply_sum(pushes, workers); },
          [this, publish = std::move(publish)](std::uint32_t group, std::uint64_t steps) {
            settle_now();  // who sees the step reads what it was applied to, by kernels of its own as well
            publish(group, steps);
          }),
      count_(std::move(count)),
      ledger_(ledger, kept == nullptr ? std::span<std::byte>() : kept->ledger()) {}

Piece Store::new_version() {
  constexpr std::uint64_t kPage = 4096;
  if (versions_.data == nullptr || versions_used_ == kPage) {
    versions_ = heap_.allocate(kPage);
    versions_used_ = 0;
  }
  const Piece word{versions_.region, versions_.offset + versions_used_, versions_.data + versions_used_};
  versions_used_ += protocol::kCacheLine;
  return word;
}

protocol::ShardLocation Store::create(const protocol::CreateShard& request, bool filled) {
  const std::lock_guard lock(mutex_);
  const auto key = std::pair(request.variable, request.shard);
  if (const auto there = shards_.find(key); there != shards_.end()) {
    // Whoever asked this process's predecessor, and had no answer, asks again.
    if (kept_ != nullptr && to_bytes(there->second.description) == to_bytes(request))
      return there->second.place;
    throw Error(Code::already_exists, fmt::format("variable {} (\"{}\") has a shard {} here",
                                                  request.variable, request.name, request.shard));
  }
  check_size(request);
  protocol::check_optimizer(request.name, request.dtype, request.optimizer);
  protocol::check_initializer(request.name, request.dtype, {request.shape.begin(), request.shape.end()},
                              request.initializer);
  const Room before = room();
  try {
    Shard made = make(request, filled);
    const protocol::ShardLocation place = made.place;
    shards_.emplace(key, std::move(made));
    const bool further = newest_ && newest_->variable == request.variable && newest_->after == before;
    newest_ = Newest{request.variable, further ? newest_->before : before, room()};
    return place;
  } catch (const Error& error) {
    back_to(before);
    if (error.code() != Code::resource_exhausted) throw;
    std::uint64_t row = 0;
    for (std::size_t slot = 0; slot < protocol::slots_of(request.optimizer.kind).size(); ++slot)
      row += size_of(protocol::slot_dtype(request.dtype));
    row = protocol::width_of(request.shape) * (row + size_of(request.dtype));
    throw Error(error.code(),
                fmt::format("variable \"{}\": ps {} has no room for shard {}, {} rows, {} bytes with the "
                            "optimizer's slots: {}",
                            request.name, ps_index_, protocol::name_of(request), request.rows,
                            request.rows * row, error.what()));
  } catch (...) {
    back_to(before);
    throw;
  }
}

Store::Room Store::room() const noexcept {
  return {heap_.mark(), kept_ == nullptr ? PersistentState::Mark{} : kept_->mark(), versions_,
          versions_used_};
}

/// Regions are unregistered before their memory goes.
void Store::back_to(const Room& room) noexcept {
  heap_.back_to(room.heap);
  if (kept_ != nullptr) kept_->back_to(room.kept);
  versions_ = room.versions;
  versions_used_ = room.versions_used;
}

void Store::drop(std::uint32_t variable) {
  const std::lock_guard lock(mutex_);
  const auto is_dropped = [&](const auto& entry) { return entry.first.first == variable; };
  for (const auto& entry : shards_) {
    if (!is_dropped(entry)) continue;
    for (const auto& snapshot : entry.second.snapshots) snapshot->preserve_all();
  }
  if (std::erase_if(shards_, is_dropped) == 0) return;
  if (newest_ && newest_->variable == variable && newest_->after == room()) {
    back_to(newest_->before);
  } else if (kept_ != nullptr) {  // rings have come since; the memory stays unused
    kept_->append_words(PersistentState::Record::dropped, {variable});
  }
  newest_.reset();
}

Store::Shard Store::make(const protocol::CreateShard& request, bool filled) {
  Shard made;
  made.description = request;
  made.place = {ps_index_, request.first_row, request.rows, protocol::kNoRegion};
  std::vector<PiecePlace> slots;
  if (request.memory == ShardMemory::device) {
    make_on_gpu(made, filled);
  } else {
    make_on_host(made, filled, slots);
  }
  const Piece version = new_version();
  made.version = reinterpret_cast<std::uint64_t*>(version.data);
  made.steps = reinterpret_cast<std::int64_t*>(version.data + sizeof(std::uint64_t));
  made.place.version_region = version.region;
  made.place.version_offset = version.offset;
  if (kept_ != nullptr) {
    std::vector<PiecePlace> pieces{{made.place.region, made.place.offset}, {version.region, version.offset}};
    pieces.insert(pieces.end(), slots.begin(), slots.end());
    kept_->append(PersistentState::Record::shard, to_bytes(ShardRecord{request, std::move(pieces)}));
  }
  return made;
}

void Store::make_on_host(Shard& made, bool filled, std::vector<PiecePlace>& slots) {
  const protocol::CreateShard& request = made.description;
  const std::uint64_t elements = request.rows * made.width();
  const Piece piece = heap_.allocate(elements * size_of(request.dtype));
  made.values = piece.data;
  made.place.region = piece.region;
  made.place.offset = piece.offset;
  if (!filled) initialize(request, made.values);  // else 0, which is what memory begins with
  for (std::size_t slot = 0; slot < protocol::slots_of(request.optimizer.kind).size(); ++slot) {
    const DType dtype = protocol::slot_dtype(request.dtype);
    const Piece slot_piece = heap_.allocate(elements * size_of(dtype));
    slots.push_back({slot_piece.region, slot_piece.offset});
    made.slots.push_back(slot_piece.data);
    const double first = protocol::initial_slot_value(request.optimizer, slot);
    if (first != 0 && !filled) fill(dtype, first, elements, made.slots.back());
  }
}

std::vector<protocol::PlaceNow> Store::places() {
  const std::lock_guard lock(mutex_);
  std::vector<protocol::PlaceNow> places;
  for (const auto& [key, shard] : shards_) places.push_back({key.first, key.second, shard.place});
  return places;
}

Store::Shard& Store::find(std::uint32_t variable, std::uint32_t shard) {
  const auto found = shards_.find({variable, shard});
  if (found == shards_.end()) {
    throw Error(Code::not_found,
                fmt::format("ps {} has no shard {} of variable {}", ps_index_, shard, variable));
  }
  return found->second;
}

template <class T>
void Store::update(Shard& shard, const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                   const std::byte* values) {
  Update<T> u;
  u.values = reinterpret_cast<T*>(shard.values);
  using Slot = Arithmetic<T>;
  u.slot0 = shard.slots.empty() ? nullptr : reinterpret_cast<Slot*>(shard.slots[0]);
  u.slot1 = shard.slots.size() < 2 ? nullptr : reinterpret_cast<Slot*>(shard.slots[1]);
  u.gradient = reinterpret_cast<const T*>(values);
  u.step = *shard.steps;
  u.width = shard.width();
  u.count = header.rows;
  if (header.kind == protocol::PushKind::sparse) {
    u.rows = rows.data();
  } else {
    // Consecutive rows are one long row: the kernel then runs without a break.
    u.values += header.first_row * u.width;
    if (u.slot0 != nullptr) u.slot0 += header.first_row * u.width;
    if (u.slot1 != nullptr) u.slot1 += header.first_row * u.width;
    u.width *= u.count;
    u.count = 1;
  }
  const auto apply = [&](const Update<T>& part) {
    if (header.op != protocol::RowOp::gradient) {
      ps::apply(header.op, part);
    } else if constexpr (!std::is_same_v<T, std::uint8_t>) {
      ps::apply(shard.description.optimizer, part);
    }
  };
  if (kept_ == nullptr) {
    apply(u);
  } else {
    const bool slots = header.op == protocol::RowOp::gradient;
    apply_in_groups(u, reinterpret_cast<T*>(shard.values), slots ? shard.slots : std::vector<std::byte*>(),
                    kept_->journal(), apply);
  }
}

bool Store::fits(const Shard& shard, const protocol::PushHeader& header,
                 std::span<const std::uint32_t> rows) {
  const bool sparse = header.kind == protocol::PushKind::sparse;
  if (!sparse && header.kind != protocol::PushKind::dense) return false;
  if (header.op > protocol::RowOp::max) return false;
  // A client that believes in wider rows, or none at all, has sent another number of bytes.
  const std::uint64_t bytes = header.in_staging_buffer != 0
                                  ? protocol::entry_bytes_in_room(header.kind, header.rows)
                                  : protocol::entry_bytes(header.kind, header.rows, shard.row_bytes());
  if (header.bytes != bytes) return false;
  const std::uint64_t have = shard.description.rows;
  if (!sparse) return header.first_row <= have && header.rows <= have - header.first_row;
  if (rows.size() != header.rows) return false;
  // The largest of them, without an early way out: the loop becomes vectors.
  std::uint32_t largest = 0;
  for (const std::uint32_t row : rows) largest = std::max(largest, row);
  return largest < have;
}

void Store::apply(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                  const std::byte* values) {
  const std::lock_guard lock(mutex_);
  const auto found = shards_.find({header.variable, header.shard});
  if (kept_ != nullptr) {
    const bool rows_of_shard =
        header.kind == protocol::PushKind::sparse || header.kind == protocol::PushKind::dense;
    kept_->begin(header, rows_of_shard && found != shards_.end() ? *found->second.steps : 0,
                 ledger_.entered(header));
  }
  if (header.kind == protocol::PushKind::step) {
    return groups_.end_step(header.variable, static_cast<int>(header.rank), header.first_row);
  }
  if (header.kind == protocol::PushKind::count) {
    settle_now();  // who sees the counter is to see what was pushed before, by kernels of its own as well
    if (ledger_.enter(header)) count_(header.variable, header.first_row);
    return;
  }
  if (found == shards_.end() || !fits(found->second, header, rows) ||
      (header.in_staging_buffer != 0 && in_staging_buffer(found->second, header, values) == nullptr)) {
    log::error("dropped a push to variable {} shard {}: {} rows do not fit what this ps holds",
               header.variable, header.shard, header.rows);
    return;
  }
  Shard& shard = found->second;
  const std::uint32_t group = shard.description.group;
  if (group != 0 && header.op == protocol::RowOp::gradient &&
      groups_.holds_back(group, static_cast<int>(header.rank))) {
    return groups_.hold(group, header, rows, {values, header.rows * shard.row_bytes()});
  }
  if (ledger_.enter(header)) return apply_now(shard, header, rows, values);
  const Writing writing(shard);
  count_part(shard, header);
}

void Store::apply_now(Shard& shard, const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                      const std::byte* values, const gpu::Event* made) {
  for (const auto& snapshot : shard.snapshots) {
    if (header.kind == protocol::PushKind::sparse) {
      snapshot->preserve(rows);
    } else {
      snapshot->preserve(header.first_row, header.rows);
    }
  }
  if (shard.touched) {
    if (header.kind == protocol::PushKind::sparse) {
      shard.touched->add(rows);
    } else {
      shard.touched->add(header.first_row, header.rows);
    }
  }
  const Writing writing(shard);
  if (header.first_part != 0) {
    ++statistics_.pushes;
    if (header.op == protocol::RowOp::gradient) ++*shard.steps;
  }
  count_part(shard, header);
  statistics_.rows_pushed += header.rows;
  shard.rows_moved += header.rows;
  statistics_.bytes_pushed += header.rows * shard.row_bytes();
  if (shard.on_gpu) return apply_on_gpu(shard, header, rows, values, made);
  with_type(shard.description.dtype,
            [&]<class T>(std::type_identity<T>) { update<T>(shard, header, rows, values); });
}

void Store::count_part(Shard& shard, const protocol::PushHeader& header) {
  const bool first = header.first_part != 0;
  const bool last = header.last_part != 0;
  if (first != last) shard.unfinished = std::max(0, shard.unfinished + (first ? 1 : -1));
}

void Store::apply_sum(std::span<const HeldPush* const> pushes, int workers) {
  Shard& shard = find(pushes.front()->header.variable, pushes.front()->header.shard);
  const HeldPush sum = sum_of(pushes, shard.description.dtype, shard.width(), shard.description.rows,
                              groups_.averages(shard.description.group) ? workers : 1);
  apply_now(shard, sum.header, sum.rows, sum.values.data());
}

void Store::create_group(const protocol::CreateGroup& request) {
  const std::lock_guard lock(mutex_);
  if (kept_ != nullptr) kept_->append(PersistentState::Record::group, to_bytes(request));
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

void Store::join(int rank) {
  const std::lock_guard lock(mutex_);
  groups_.join(rank);
}

void Store::remove(int rank) {
  const std::lock_guard lock(mutex_);
  groups_.remove(rank);
  ledger_.close(rank);
}

bool Store::ready(const protocol::PushHeader& header) {
  if (header.first_part == 0 || header.kind == protocol::PushKind::step ||
      header.kind == protocol::PushKind::count)
    return true;  // the shard waits for the rest of this one, too
  const std::lock_guard lock(mutex_);
  const auto found = shards_.find({header.variable, header.shard});
  return found == shards_.end() || found->second.waiting_reads == 0;
}

void Store::abandon(std::uint32_t variable, std::uint32_t shard) {
  const std::lock_guard lock(mutex_);
  const auto found = shards_.find({variable, shard});
  if (found == shards_.end() || found->second.unfinished == 0) return;
  const Writing writing(found->second);
  --found->second.unfinished;
}

Store::RowsView Store::view(std::uint32_t variable, std::uint32_t shard) {
  const std::lock_guard lock(mutex_);
  const Shard& found = find(variable, shard);
  return {found.values, found.description.rows, found.row_bytes(), found.on_gpu};
}

void Store::gather(const RowsView& from, std::span<const std::uint32_t> rows, std::byte* out) {
  const std::lock_guard lock(mutex_);
  if (from.on_gpu) return on_gpu([&] { from.on_gpu->read_rows(0, rows, out); });
  protocol::gather_rows(from.values, from.row_bytes, rows, {}, out);
}

void Store::gather(const RowsView& from, std::uint64_t first_byte, std::span<std::byte> out) {
  const std::lock_guard lock(mutex_);
  if (from.on_gpu) return on_gpu([&] { from.on_gpu->read(0, first_byte, out); });
  if (!out.empty()) std::memcpy(out.data(), from.values + first_byte, out.size());
}

void Store::count_sent(std::uint32_t variable, std::uint32_t shard, std::uint64_t rows) {
  const std::lock_guard lock(mutex_);
  statistics_.rows_sent += rows;
  const auto found = shards_.find({variable, shard});
  if (found != shards_.end()) found->second.rows_moved += rows;
}

bool Store::whole(std::uint32_t variable, std::uint32_t shard) {
  const std::lock_guard lock(mutex_);
  return find(variable, shard).unfinished == 0;
}

void Store::add_waiting_read(std::uint32_t variable, std::uint32_t shard, int count) {
  const std::lock_guard lock(mutex_);
  find(variable, shard).waiting_reads += count;
}

protocol::PsStatistics Store::statistics() {
  const std::lock_guard lock(mutex_);
  statistics_.heap_bytes = heap_.bytes();
  statistics_.gpu_bytes = 0;
  for (const auto& [key, shard] : shards_) statistics_.gpu_bytes += shard.on_gpu ? shard.on_gpu->bytes() : 0;
  return statistics_;
}

protocol::PsReport Store::report() {
  protocol::PsReport report;
  report.statistics = statistics();
  const std::lock_guard lock(mutex_);
  report.shards = shards_.size();
  for (const auto& [key, shard] : shards_) {
    if (shard.rows_moved > report.hottest.rows)
      report.hottest = {shard.description.name, shard.description.shard, shard.rows_moved};
  }
  for (const auto& [id, clocks] : groups_.all_clocks()) report.groups.push_back({id, clocks});
  return report;
}

}  // namespace capstan::ps

// restore_plan.cpp -- finds the rows of shards in the datasets of all parts.
#include "protocol/restore_plan.hpp"

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <utility>

#include "io/hdf5/layout.hpp"
#include "io/hdf5/verify.hpp"
#include "protocol/table_layout.hpp"

namespace capstan::protocol {
namespace {

std::string absolute_name(const std::filesystem::path& path) {
  return std::filesystem::absolute(path).string();
}

}  // namespace

class RestorePlan::Files {
 public:
  Files(const std::vector<Part>& parts, std::vector<std::string>& names) : parts_(parts), names_(names) {}
  std::uint32_t number(std::size_t part) {
    const auto [location, is_new] = numbers_.emplace(part, static_cast<std::uint32_t>(numbers_.size()));
    if (is_new) names_.push_back(parts_[part].file);
    return location->second;
  }

 private:
  const std::vector<Part>& parts_;
  std::vector<std::string>& names_;
  std::map<std::size_t, std::uint32_t> numbers_;
};

RestorePlan::RestorePlan(const io::CheckpointReader& reader, int ps)
    : reader_(reader), shards_(static_cast<std::size_t>(ps)) {
  add(reader, false);
  if (reader.base() != nullptr) add(*reader.base(), true);
  for (auto& [name, extents] : arrays_) {
    std::sort(extents.begin(), extents.end(),
              [](const Extent& a, const Extent& b) { return a.first_row < b.first_row; });
  }
}

void RestorePlan::add(const io::CheckpointReader& from, bool is_base) {
  for (const io::PartReport& part : from.parts()) {
    parts_.push_back({is_base ? absolute_name(from.directory() / part.file) : part.file, &part});
    for (std::size_t i = 0; i < part.datasets.size(); ++i) {
      const io::DatasetReport& d = part.datasets[i];
      if (is_base && !reader_.base_has(d.variable, d.component)) continue;
      auto& extents = (d.changed ? changed_ : arrays_)[{d.variable, d.component}];
      extents.push_back({d.first_row, d.rows, {parts_.size() - 1, i}});
    }
  }
}

const io::DatasetReport& RestorePlan::report(const Dataset& dataset) const {
  return parts_[dataset.first].report->datasets[dataset.second];
}

RestorePlan::Dataset RestorePlan::numbers_of(const Dataset& changed) const {
  const io::PartReport& part = *parts_[changed.first].report;
  const io::DatasetReport& numbers = io::numbers_of(part, report(changed));
  return {changed.first, static_cast<std::size_t>(&numbers - part.datasets.data())};
}

void RestorePlan::fill_table(int ps, const ShardSource& shard, std::uint64_t shards) {
  const auto parts = io::saved_table_parts(reader_, shard.name);
  if (parts.empty()) (void)reader_.variable(io::table_part(shard.name, 0));  // throws: it is missing
  bool first = true;
  for (std::uint32_t part = 0; part < parts.size(); ++part) {
    if (parts.size() == shards && part != shard.shard) continue;
    ShardSource source = shard;
    source.name = parts[part]->name;
    source.first_row = 0;
    source.rows = parts[part]->shape.front();
    source.slots.insert(source.slots.end(), {io::kTableKeys, io::kTableStates});
    RestoreShard to = filled(ps, source);
    to.table = RestoreTable{source.rows, shards, std::exchange(first, false)};
    shards_[static_cast<std::size_t>(ps)].push_back(std::move(to));
  }
}

void RestorePlan::fill(int ps, const ShardSource& shard) {
  shards_[static_cast<std::size_t>(ps)].push_back(filled(ps, shard));
}

RestoreShard RestorePlan::filled(int ps, const ShardSource& shard) {
  const io::VariableInfo& variable = reader_.variable(shard.name);
  RestoreShard to{shard.variable,
                  shard.shard,
                  variable.steps_of(shard.first_row, shard.rows),
                  variable.learning_rate_of(shard.first_row, shard.rows),
                  {},
                  {},
                  {}};
  take_array(ps, shard, io::kValue, 0, to);
  for (std::size_t slot = 0; slot < shard.slots.size(); ++slot) {
    take_array(ps, shard, shard.slots[slot], static_cast<std::uint32_t>(slot + 1), to);
  }
  return to;
}

void RestorePlan::take_array(int ps, const ShardSource& from, const std::string& component,
                             std::uint32_t array, RestoreShard& to) {
  const ArrayName name{from.name, component};
  const std::uint64_t past = from.first_row + from.rows;
  if (const auto found = arrays_.find(name); found != arrays_.end()) {
    const std::vector<Extent>& extents = found->second;
    auto extent =
        std::upper_bound(extents.begin(), extents.end(), from.first_row,
                         [](std::uint64_t row, const Extent& e) { return row < e.first_row + e.rows; });
    for (; extent != extents.end() && extent->first_row < past; ++extent)
      take_rows(ps, from, *extent, array, to);
  }
  if (const auto found = changed_.find(name); found != changed_.end()) {
    for (const Extent& extent : found->second) {
      if (extent.first_row < past && from.first_row < extent.first_row + extent.rows)
        take_changes(ps, extent, array, to);
    }
  }
}

void RestorePlan::take_rows(int ps, const ShardSource& from, const Extent& extent, std::uint32_t array,
                            RestoreShard& to) {
  const io::DatasetReport& dataset = report(extent.dataset);
  const std::uint64_t row_bytes = io::row_bytes(dataset.shape, dataset.dtype);
  const std::uint64_t begin = std::max(from.first_row, extent.first_row);
  const std::uint64_t end = std::min(from.first_row + from.rows, extent.first_row + extent.rows);
  if (begin >= end || row_bytes == 0) return;
  const std::uint64_t bytes = (end - begin) * row_bytes;
  to.pieces.push_back({static_cast<std::uint32_t>(extent.dataset.first), array,
                       dataset.offset + (begin - extent.first_row) * row_bytes, bytes,
                       (begin - from.first_row) * row_bytes});
  take(ps, extent.dataset, bytes);
}

void RestorePlan::take_changes(int ps, const Extent& extent, std::uint32_t array, RestoreShard& to) {
  const io::DatasetReport& dataset = report(extent.dataset);
  if (io::data_bytes(dataset) == 0) return;
  const Dataset numbers = numbers_of(extent.dataset);
  to.changes.push_back(
      {static_cast<std::uint32_t>(extent.dataset.first), array, io::changed_rows(report(numbers), dataset)});
  take(ps, extent.dataset, io::data_bytes(dataset));
  take(ps, numbers, io::data_bytes(report(numbers)));
}

void RestorePlan::check_complete(const std::string& variable) {
  for (const auto* arrays : {&arrays_, &changed_}) {
    for (auto array = arrays->lower_bound({variable, ""});
         array != arrays->end() && array->first.first == variable; ++array) {
      for (const Extent& extent : array->second) {
        if (io::data_bytes(report(extent.dataset)) != 0) taken_.try_emplace(extent.dataset);
      }
    }
  }
}

std::vector<CheckRestore> RestorePlan::checks() const {
  std::vector<CheckRestore> checks(shards_.size());
  std::vector<Files> files;
  for (CheckRestore& check : checks) {
    check.directory = absolute_name(reader_.directory());
    files.emplace_back(parts_, check.files);
  }
  std::vector<std::uint64_t> load(shards_.size());
  for (const auto& [dataset, takers] : taken_) {
    const auto bytes_of = [&takers = takers](std::size_t ps) {
      const auto found = takers.find(static_cast<int>(ps));
      return found == takers.end() ? std::uint64_t{0} : found->second;
    };
    std::size_t best = 0;
    for (std::size_t ps = 1; ps < load.size(); ++ps) {
      if (std::tuple(bytes_of(best), load[ps]) < std::tuple(bytes_of(ps), load[best])) best = ps;
    }
    const io::DatasetReport& d = report(dataset);
    const std::uint64_t bytes = io::data_bytes(d);
    load[best] += bytes;
    checks[best].datasets.push_back({files[best].number(dataset.first), d.offset, bytes, d.xxh3,
                                     io::dataset_path(d.variable, d.component)});
  }
  return checks;
}

std::uint64_t RestorePlan::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [dataset, takers] : taken_) bytes += io::data_bytes(report(dataset));
  return bytes;
}

std::vector<RestorePart> RestorePlan::parts() const {
  std::vector<RestorePart> parts(shards_.size());
  for (std::size_t ps = 0; ps < parts.size(); ++ps) {
    parts[ps].directory = absolute_name(reader_.directory());
    parts[ps].shards = shards_[ps];
    Files files(parts_, parts[ps].files);
    for (RestoreShard& shard : parts[ps].shards) {
      for (RestorePiece& piece : shard.pieces) piece.file = files.number(piece.file);
      for (RestoreChanges& changes : shard.changes) changes.file = files.number(changes.file);
    }
  }
  return parts;
}

}  // namespace capstan::protocol

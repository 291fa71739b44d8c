// restore_plan.cpp -- rows of shards looked up among the datasets of all parts.
#include "shard/restore_plan.hpp"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "io/hdf5/layout.hpp"
#include "io/hdf5/verify.hpp"

namespace capstan::shard {
namespace {

/// Numbers of parts as they come up, and their names.
class Files {
 public:
  Files(const io::CheckpointReader& reader, std::vector<std::string>& names)
      : reader_(reader), names_(names) {}
  std::uint32_t number(std::size_t part) {
    const auto [place, is_new] = numbers_.emplace(part, static_cast<std::uint32_t>(numbers_.size()));
    if (is_new) names_.push_back(reader_.parts()[part].file);
    return place->second;
  }

 private:
  const io::CheckpointReader& reader_;
  std::vector<std::string>& names_;
  std::map<std::size_t, std::uint32_t> numbers_;
};

std::string absolute_name(const std::filesystem::path& folder) {
  return std::filesystem::absolute(folder).string();
}

}  // namespace

RestorePlan::RestorePlan(const io::CheckpointReader& reader, int ps)
    : reader_(reader), shards_(static_cast<std::size_t>(ps)) {
  for (std::size_t part = 0; part < reader.parts().size(); ++part) {
    const auto& datasets = reader.parts()[part].datasets;
    for (std::size_t i = 0; i < datasets.size(); ++i) {
      arrays_[{datasets[i].variable, datasets[i].which}].push_back(
          {datasets[i].first_row, datasets[i].rows, {part, i}});
    }
  }
  for (auto& [name, extents] : arrays_) {
    std::sort(extents.begin(), extents.end(),
              [](const Extent& a, const Extent& b) { return a.first_row < b.first_row; });
  }
}

const io::DatasetReport& RestorePlan::report(const Dataset& dataset) const {
  return reader_.parts()[dataset.first].datasets[dataset.second];
}

void RestorePlan::fill(int ps, const ShardSource& shard) {
  RestoreShard to{
      shard.variable, shard.shard, reader_.variable(shard.name).steps_of(shard.first_row, shard.rows), {}};
  take_rows(ps, shard, io::kValue, 0, to);
  for (std::size_t slot = 0; slot < shard.slots.size(); ++slot) {
    take_rows(ps, shard, shard.slots[slot], static_cast<std::uint32_t>(slot + 1), to);
  }
  shards_[static_cast<std::size_t>(ps)].push_back(std::move(to));
}

void RestorePlan::take_rows(int ps, const ShardSource& from, const std::string& which, std::uint32_t array,
                            RestoreShard& to) {
  const std::vector<Extent>& extents = arrays_.at({from.name, which});
  const std::uint64_t past = from.first_row + from.rows;
  auto extent =
      std::upper_bound(extents.begin(), extents.end(), from.first_row,
                       [](std::uint64_t row, const Extent& e) { return row < e.first_row + e.rows; });
  for (; extent != extents.end() && extent->first_row < past; ++extent) {
    const io::DatasetReport& dataset = report(extent->dataset);
    const std::uint64_t row_bytes = io::row_bytes(dataset.shape, dataset.dtype);
    const std::uint64_t begin = std::max(from.first_row, extent->first_row);
    const std::uint64_t end = std::min(past, extent->first_row + extent->rows);
    if (begin >= end || row_bytes == 0) continue;
    const std::uint64_t bytes = (end - begin) * row_bytes;
    to.pieces.push_back({static_cast<std::uint32_t>(extent->dataset.first), array,
                         dataset.offset + (begin - extent->first_row) * row_bytes, bytes,
                         (begin - from.first_row) * row_bytes});
    taken_[extent->dataset][ps] += bytes;
  }
}

void RestorePlan::check_whole(const std::string& variable) {
  for (auto array = arrays_.lower_bound({variable, ""});
       array != arrays_.end() && array->first.first == variable; ++array) {
    for (const Extent& extent : array->second) {
      if (io::data_bytes(report(extent.dataset)) != 0) taken_.try_emplace(extent.dataset);
    }
  }
}

std::vector<CheckRestore> RestorePlan::checks() const {
  std::vector<CheckRestore> checks(shards_.size());
  std::vector<Files> files;
  for (CheckRestore& check : checks) {
    check.folder = absolute_name(reader_.folder());
    files.emplace_back(reader_, check.files);
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
    checks[best].datasets.push_back(
        {files[best].number(dataset.first), d.offset, bytes, d.xxh3, io::dataset_path(d.variable, d.which)});
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
    parts[ps].folder = absolute_name(reader_.folder());
    parts[ps].shards = shards_[ps];
    Files files(reader_, parts[ps].files);
    for (RestoreShard& shard : parts[ps].shards) {
      for (RestorePiece& piece : shard.pieces) piece.file = files.number(piece.file);
    }
  }
  return parts;
}

}  // namespace capstan::shard

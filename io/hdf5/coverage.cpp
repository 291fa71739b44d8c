// coverage.cpp -- checks that the parts of a checkpoint hold every row of every array exactly once.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/name.hpp"
#include "capstan/error.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"

namespace capstan::io {
namespace {

struct Piece {
  const PartReport* part;
  const DatasetReport* dataset;
};
using Pieces = std::vector<Piece>;

Error refused(std::string_view variable, std::string_view component, std::string_view fault) {
  return Error(Code::invalid_argument, fmt::format("{} of \"{}\": {}", component, variable, fault));
}

void check_pieces(Pieces& pieces) {
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.dataset->first_row < b.dataset->first_row; });
  const DatasetReport& first = *pieces.front().dataset;
  check_shape(fmt::format("{} of \"{}\"", first.component, first.variable), first.shape, first.dtype);
  std::uint64_t next = 0;
  for (const auto& [part, dataset] : pieces) {
    const auto fault = [&, part = part, dataset = dataset](std::string_view text) {
      return refused(dataset->variable, dataset->component, fmt::format("{} ({})", text, part->file));
    };
    if (dataset->dtype != first.dtype) throw fault("the parts differ in dtype");
    if (dataset->shape != first.shape) throw fault("the parts differ in shape");
    if (dataset->optimizer != first.optimizer) throw fault("the parts differ in optimizer");
    if (dataset->first_row > next)
      throw fault(fmt::format("rows {} to {} are missing", next, dataset->first_row));
    if (dataset->first_row < next) throw fault(fmt::format("row {} is duplicated", dataset->first_row));
    const bool redundant = dataset->rows == 0 && first.shape[0] != 0;
    if (redundant || dataset->rows > first.shape[0] - next)
      throw fault("is empty, or extends past the last row");
    next += dataset->rows;
  }
  if (next != first.shape[0]) {
    throw refused(first.variable, first.component,
                  fmt::format("rows {} to {} are missing", next, first.shape[0]));
  }
}

/// Checks that, in an increment, every array of a variable has the rows listed in its kChangedRows array.
void check_changes(const std::string& variable, const std::map<std::string, Pieces>& arrays) {
  const auto numbers = arrays.find(kChangedRows);
  for (const auto& [component, pieces] : arrays) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const DatasetReport& dataset = *pieces[i].dataset;
      if (numbers == arrays.end()) {
        if (dataset.changed) throw refused(variable, component, "changed rows without row numbers");
        continue;
      }
      const Pieces& listed = numbers->second;
      const bool same = i < listed.size() && listed[i].part == pieces[i].part &&
                        listed[i].dataset->rows == dataset.rows && dataset.changed &&
                        listed[i].dataset->changed == dataset.changed;
      if (!same) throw refused(variable, component, "its rows differ from those of changed_rows");
    }
  }
}

void check_numbers(const std::string& variable, const DatasetReport& numbers, const DatasetReport& values) {
  const bool one_each =
      numbers.shape.size() == 1 && !values.shape.empty() && numbers.shape[0] == values.shape[0];
  if (numbers.dtype == DType::int64 && one_each) return;
  throw refused(variable, kChangedRows, "expected one int64 per changed row");
}

void add_values(VariableInfo& variable, const Pieces& pieces) {
  const DatasetReport& first = *pieces.front().dataset;
  variable.dtype = first.dtype;
  variable.shape = first.shape;
  variable.optimizer = first.optimizer;
  for (const auto& [part, dataset] : pieces) {
    variable.shards.push_back({dataset->first_row, dataset->rows, dataset->steps, dataset->learning_rate});
    variable.steps = std::max(variable.steps, dataset->steps);
    if (dataset->changed) variable.changed = variable.changed.value_or(0) + *dataset->changed;
  }
}

}  // namespace

std::int64_t VariableInfo::steps_of(std::uint64_t first_row, std::uint64_t rows) const {
  std::int64_t most = 0;
  for (const ShardSteps& shard : shards) {
    const bool overlaps = shard.first_row < first_row + rows && first_row < shard.first_row + shard.rows;
    if (overlaps) most = std::max(most, shard.steps);
  }
  return most;
}

std::optional<double> VariableInfo::learning_rate_of(std::uint64_t first_row, std::uint64_t rows) const {
  for (const ShardSteps& shard : shards) {
    const bool overlaps = shard.first_row < first_row + rows && first_row < shard.first_row + shard.rows;
    if (overlaps && shard.learning_rate) return shard.learning_rate;
  }
  return std::nullopt;
}

std::vector<PartReport> in_order(std::span<const PartReport> parts) {
  if (parts.empty()) throw Error(Code::invalid_argument, "a checkpoint has no parts, expected at least one");
  std::vector<PartReport> ordered(parts.size());
  for (const PartReport& part : parts) {
    const auto number = part_of_name(part.file);
    if (!number || number->count != static_cast<std::int64_t>(parts.size())) {
      throw Error(Code::invalid_argument,
                  fmt::format("\"{}\" is not the name of one of {} parts", part.file, parts.size()));
    }
    PartReport& slot = ordered[static_cast<std::size_t>(number->index)];
    if (!slot.file.empty()) throw Error(Code::invalid_argument, part.file + " is given twice");
    slot = part;
  }
  return ordered;
}

std::vector<VariableInfo> variables_of(std::span<const PartReport> parts) {
  std::map<std::string, std::map<std::string, Pieces>> arrays;
  for (const PartReport& part : parts) {
    for (const DatasetReport& dataset : part.datasets) {
      check_name("variable", dataset.variable);
      check_component(dataset.component);
      arrays[dataset.variable][dataset.component].push_back({&part, &dataset});
    }
  }
  std::vector<std::string> names;
  std::vector<VariableInfo> variables;
  bool increment = false;
  for (auto& [name, pieces_of] : arrays) {
    VariableInfo variable{.name = name};
    if (!pieces_of.contains(kValue)) throw refused(name, kValue, "missing from all parts");
    for (auto& [component, pieces] : pieces_of) {
      check_pieces(pieces);
      const DatasetReport& first = *pieces.front().dataset;
      if (component == kValue) {
        add_values(variable, pieces);
      } else if (component == kChangedRows) {
        check_numbers(name, first, *pieces_of.at(kValue).front().dataset);
      } else {
        variable.slots.push_back({component, first.dtype, first.shape});
      }
    }
    check_changes(name, pieces_of);
    increment = increment || variable.changed.has_value();
    names.push_back(name);
    variables.push_back(std::move(variable));
  }
  check_no_collisions(names, increment);
  return variables;
}

}  // namespace capstan::io

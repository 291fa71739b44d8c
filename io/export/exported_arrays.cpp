// exported_arrays.cpp -- joins the parts of dynamic tables.
#include <fmt/format.h>

#include <algorithm>

#include "capstan/error.hpp"
#include "io/export/export.hpp"
#include "io/export/table_stream.hpp"
#include "io/hdf5/table_parts.hpp"

namespace capstan::io {
namespace {

/// Adds the arrays of a table.
void add_table(const CheckpointReader& from, const std::string& table,
               const std::vector<const VariableInfo*>& parts, bool with_slots, std::vector<ArrayInfo>& to) {
  std::uint64_t keys = 0;
  for (const VariableInfo* part : parts) keys += count_keys(from, *part);
  VariableInfo joined = *parts.front();
  joined.name = table;
  joined.shape.at(0) = keys;
  std::erase_if(joined.slots, [&](SlotInfo& slot) {
    slot.shape.at(0) = keys;
    return slot.name == kTableStates || (slot.name != kTableKeys && !with_slots);
  });
  for (ArrayInfo& array : arrays_of({&joined, 1}, /*with_slots=*/true)) to.push_back(std::move(array));
}

}  // namespace

std::vector<ArrayInfo> exported_arrays(const CheckpointReader& from, const std::vector<std::string>& names,
                                       bool with_slots) {
  std::vector<std::string> wanted = names;
  if (names.empty()) {
    for (const VariableInfo& variable : from.variables()) {
      const std::string name = is_table_part(variable) ? table_of_part(variable.name) : variable.name;
      if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) wanted.push_back(name);
    }
  }
  std::vector<ArrayInfo> arrays;
  for (const std::string& name : wanted) {
    if (const auto parts = saved_table_parts(from, name); !parts.empty()) {
      add_table(from, name, parts, with_slots, arrays);
      continue;
    }
    const VariableInfo& variable = from.variable(name);
    if (is_table_part(variable)) {
      throw Error(Code::invalid_argument, fmt::format("\"{}\" is a part of a dynamic table; export \"{}\"",
                                                      name, table_of_part(name)));
    }
    for (ArrayInfo& array : arrays_of({&variable, 1}, with_slots)) arrays.push_back(std::move(array));
  }
  return arrays;
}

void read_exported(const CheckpointReader& from, const ArrayInfo& array, bool widen,
                   const ProgressCallback& progress,
                   const std::function<void(std::string_view piece)>& sink) {
  if (saved_table_parts(from, array.variable).empty()) {
    ArrayStream stream(from, array);
    return read_array(stream, widen, progress, sink);
  }
  TableStream stream(from, array);
  read_array(stream, widen, progress, sink);
}

}  // namespace capstan::io

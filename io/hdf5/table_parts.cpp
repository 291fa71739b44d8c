// table_parts.cpp -- names of the parts, and rows in use.
#include "io/hdf5/table_parts.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "io/hdf5/array_stream.hpp"

namespace capstan::io {
namespace {

constexpr std::string_view kPart = "/part_";

}  // namespace

std::string table_part(const std::string& table, std::uint64_t shard) {
  return table + std::string(kPart) + std::to_string(shard);
}

std::string table_of_part(std::string_view part) { return std::string(part.substr(0, part.rfind(kPart))); }

bool is_table_part(const VariableInfo& variable) {
  return std::any_of(variable.slots.begin(), variable.slots.end(),
                     [](const SlotInfo& slot) { return slot.name == kTableKeys; });
}

std::vector<const VariableInfo*> saved_table_parts(const CheckpointReader& from, const std::string& table) {
  std::map<std::string_view, const VariableInfo*> by_name;
  for (const VariableInfo& variable : from.variables()) by_name.emplace(variable.name, &variable);
  std::vector<const VariableInfo*> parts;
  for (;;) {
    const auto found = by_name.find(table_part(table, parts.size()));
    if (found == by_name.end() || !is_table_part(*found->second)) return parts;
    parts.push_back(found->second);
  }
}

std::uint64_t count_keys(const CheckpointReader& from, const VariableInfo& part) {
  std::uint64_t keys = 0;
  ArrayStream stream(from, {part.name, kTableStates, DType::int32, {part.shape.at(0)}});
  read_array(stream, /*widen=*/false, {}, [&](std::string_view piece) {
    for (std::size_t at = 0; at < piece.size(); at += sizeof(std::uint32_t)) {
      std::uint32_t state = 0;
      std::memcpy(&state, piece.data() + at, sizeof state);
      if ((state & kRowInUse) != 0) ++keys;
    }
  });
  return keys;
}

}  // namespace capstan::io

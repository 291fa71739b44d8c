// table_parts.hpp -- dynamic tables in a checkpoint (docs/checkpoint_format.md).
//
// Each shard of a table is saved as a variable table_part(table, shard), with two arrays in addition to the
// slots of its optimizer: kTableKeys and kTableStates.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

/// Keys by row: int64.
inline constexpr const char* kTableKeys = "table_key";
/// States by row: int32, with kRowInUse for rows that have a key.
inline constexpr const char* kTableStates = "table_state";
inline constexpr std::uint32_t kRowInUse = 1U << 31;

std::string table_part(const std::string& table, std::uint64_t shard);
/// Returns the name of the table of a part.
std::string table_of_part(std::string_view part);
/// Returns true if a variable is a part of a table.
bool is_table_part(const VariableInfo& variable);
/// Returns the parts of a table by shard; none if the checkpoint does not have the table.
std::vector<const VariableInfo*> saved_table_parts(const CheckpointReader& from, const std::string& table);
/// Returns the number of keys of a part. Reads all its states.
std::uint64_t count_keys(const CheckpointReader& from, const VariableInfo& part);

}  // namespace capstan::io

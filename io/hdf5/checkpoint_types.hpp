// checkpoint_types.hpp -- data exchanged between the ps that write a checkpoint, the coordinator that
// publishes it, and readers.
//
// Plain aggregates of strings, integers and vectors, so that any serialization fits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capstan/dtype.hpp"

namespace capstan::io {

/// `which` of the array with a variable's values. For other arrays, `which` is kChangedRows or the name of an
/// optimizer slot.
inline constexpr const char* kValue = "value";

/// `which` of the array with the numbers of a variable's changed rows in an increment: int64, strictly
/// increasing.
inline constexpr const char* kChangedRows = "changed_rows";

/// Rows of one variable, or of one of its slots, that this ps owns: all of them or, in an increment, the
/// changed ones. Row-major, without padding. Either `data` points to the rows and must stay valid and
/// unchanged until `write_part` returns, or `read` copies stored rows [first, first + count) to `out`.
/// `write_part` reads each row once, in order; `read` may throw.
struct PartArray {
  std::string variable = {};       // "w", "entities/embedding"
  std::string component = kValue;  // "value", or a slot: "accumulator", "m", "v"
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape = {};  // of the complete variable: rank 1 to 32
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;  // if 0 although the variable has rows, the file omits the array
  const void* data = nullptr;
  std::function<void(std::uint64_t first, std::uint64_t count, std::byte* out)> read = {};
  /// In an increment: number of rows given; the variable's kChangedRows array has their row numbers.
  std::optional<std::uint64_t> changed = {};
  std::string optimizer = {};                // description of the variable's optimizer; only for "value"
  std::int64_t steps = 0;                    // updates applied to this shard (Adam's t); only for "value"
  std::optional<double> learning_rate = {};  // set during training; only for "value"

  /// Number of rows in the file.
  std::uint64_t stored() const noexcept { return changed.value_or(rows); }
};

/// One dataset of a part, as written.
struct DatasetReport {
  std::string variable = {};
  std::string component = {};
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape = {};  // of the complete variable
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::optional<std::uint64_t> changed = {};  // in an increment: number of rows in the file
  std::uint64_t offset = 0;                   // of the raw bytes in the file
  std::string xxh3 = {};                      // XXH3-64 of the raw bytes, 16 hex digits
  std::string optimizer = {};
  std::int64_t steps = 0;
  std::optional<double> learning_rate = {};

  std::uint64_t stored() const noexcept { return changed.value_or(rows); }
};

/// Result of `write_part`, which a ps sends to the coordinator.
struct PartReport {
  std::string file = {};  // name without directory
  std::uint64_t bytes = 0;
  std::string metadata_xxh3 = {};  // XXH3-64 of all bytes of the file that belong to no dataset
  std::vector<DatasetReport> datasets = {};
};

/// Number of updates that the shard with these rows had applied, and its learning rate if one was set.
struct ShardSteps {
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::int64_t steps = 0;
  std::optional<double> learning_rate = {};
};

struct SlotInfo {
  std::string name = {};
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape = {};
};

/// One variable of a checkpoint.
struct VariableInfo {
  std::string name = {};
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape = {};
  std::string optimizer = {};
  std::vector<SlotInfo> slots = {};           // by name
  std::vector<ShardSteps> shards = {};        // by first row, as partitioned at the time of the save
  std::int64_t steps = 0;                     // maximum over the shards
  std::optional<std::uint64_t> changed = {};  // in an increment: number of rows in the checkpoint

  /// Returns the largest `steps` of the shards that held any of these rows.
  std::int64_t steps_of(std::uint64_t first_row, std::uint64_t rows) const;
  /// Returns the first learning rate that was set for a shard with any of these rows.
  std::optional<double> learning_rate_of(std::uint64_t first_row, std::uint64_t rows) const;
};

}  // namespace capstan::io

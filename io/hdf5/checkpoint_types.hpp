// checkpoint_types.hpp -- what travels between a ps that writes, the coordinator that publishes, and a
// reader.
//
// Plain aggregates of strings, integers and vectors: whoever sends them packs them as it likes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capstan/dtype.hpp"

namespace capstan::io {

/// The `which` of a variable's own values; every other `which` is the name of an optimizer slot.
inline constexpr const char* kValue = "value";

/// In an increment the `which` of the numbers of a variable's rows that changed: int64, rising.
inline constexpr const char* kChangedRows = "changed_rows";

/// Rows of one variable, or of one of its slots, that this ps owns: `rows` rows of the shape, row-major,
/// without padding, or of an increment those of them that changed. They lie at `data`, which must stay alive
/// and unchanged until `write_part` returns, or `read` copies [first, first + count) of what is given to
/// `out`: it is called once for each row, in order, and may throw.
struct PartArray {
  std::string variable = {};   // "w", "entities/embedding"
  std::string which = kValue;  // "value", or a slot: "accumulator", "m", "v"
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape = {};  // of the whole variable: rank 1 or 2, no dimension is zero
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;  // 0: nothing of it lies here; it is left out of the file
  const void* data = nullptr;
  std::function<void(std::uint64_t first, std::uint64_t count, std::byte* out)> read = {};
  /// Of an increment: how many of these rows are given, numbered by the variable's kChangedRows.
  std::optional<std::uint64_t> changed = {};
  std::string optimizer = {};                // description of the variable's optimizer; of "value" alone
  std::int64_t steps = 0;                    // updates that this shard has seen (Adam's t); of "value" alone
  std::optional<double> learning_rate = {};  // set during training; of "value" alone

  std::uint64_t stored() const noexcept { return changed.value_or(rows); }
};

/// One dataset of a part, as written.
struct DatasetReport {
  std::string variable = {};
  std::string which = {};
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape = {};  // of the whole variable
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::optional<std::uint64_t> changed = {};  // of an increment: so many of them are in the file
  std::uint64_t offset = 0;                   // of the raw bytes in the file
  std::string xxh3 = {};                      // XXH3-64 of the raw bytes, 16 hex digits
  std::string optimizer = {};
  std::int64_t steps = 0;
  std::optional<double> learning_rate = {};

  std::uint64_t stored() const noexcept { return changed.value_or(rows); }
};

/// What one ps tells the coordinator after `write_part`.
struct PartReport {
  std::string file = {};  // name without folder
  std::uint64_t bytes = 0;
  std::string metadata_xxh3 = {};  // XXH3-64 of all bytes of the file that belong to no dataset
  std::vector<DatasetReport> datasets = {};
};

/// The updates that the shard with these rows had applied, and its learning rate if one was set.
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
  std::vector<ShardSteps> shards = {};        // by first row; how it was cut when it was written
  std::int64_t steps = 0;                     // the most that any shard had seen
  std::optional<std::uint64_t> changed = {};  // of an increment: how many rows of it are there

  /// The most that any shard which held some of these rows had seen.
  std::int64_t steps_of(std::uint64_t first_row, std::uint64_t rows) const;
  /// The learning rate that was set for the first shard which held some of these rows and had one.
  std::optional<double> learning_rate_of(std::uint64_t first_row, std::uint64_t rows) const;
};

}  // namespace capstan::io

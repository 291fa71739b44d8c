// descriptor.hpp -- the shape, optimizer and shard locations of a variable, and checks of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/dtype.hpp"
#include "capstan/error.hpp"
#include "capstan/initializers.hpp"
#include "capstan/optimizers.hpp"
#include "capstan/table_options.hpp"
#include "capstan/variable_options.hpp"

namespace capstan::protocol {

/// A variable has rows_of(shape) rows along axis 0, of width_of(shape) elements each. A scalar is one row
/// of one element.
std::uint64_t rows_of(const std::vector<std::uint64_t>& shape) noexcept;
std::uint64_t width_of(const std::vector<std::uint64_t>& shape) noexcept;
/// The shape in a checkpoint, where a scalar is an array of one element.
std::vector<std::uint64_t> stored_shape(const std::vector<std::uint64_t>& shape);
/// The dtype of an optimizer's slots: float32 for 16-bit variables, since small updates of 16-bit slots would
/// be rounded away.
DType slot_dtype(DType dtype) noexcept;

/// How a ps stores the rows of a variable in memory. Messages and checkpoints have rows of its dtype.
struct RowStorage {
  bool int8 = false;                 // as protocol/int8_rows.hpp; the variable is float32, in host memory
  bool stochastic_rounding = false;  // of updates to int8 rows and 16-bit values; otherwise to nearest

  bool operator==(const RowStorage&) const = default;
};
/// Returns the bytes of a row of `width` elements in the memory of a ps.
std::uint64_t stored_row_bytes(DType dtype, std::uint64_t width, const RowStorage& storage) noexcept;

/// Maximum number of rows of a shard. Pushes, reads and snapshots use 32-bit row numbers, and tables on
/// GPUs need one number in addition.
inline constexpr std::uint64_t kMaxShardRows = 0xffff'fffe;

/// A region number for shards that clients cannot access directly: the ps serves all reads.
inline constexpr std::uint64_t kNoRegion = ~std::uint64_t{0};

/// Location of a shard in the registered memory of a ps.
struct ShardLocation {
  std::int32_t ps = 0;  // index among the ps
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::uint64_t region = 0;  // number of one of the ps's regions, or kNoRegion
  std::uint64_t offset = 0;  // of the shard's first value in that region
  // Location of the shard's version: a 64-bit word in its own cache line, odd while a push is being
  // applied.
  std::uint64_t version_region = 0;
  std::uint64_t version_offset = 0;
};

/// How the shards of a dynamic table handle missing, excess and rare keys; see TableOptions.
struct TablePolicy {
  MissingKeys missing{};
  WhenFull when_full{};
  std::uint32_t admit_after = 1;
  std::uint64_t evict_after = 0;
  double admit_probability = 1;

  bool evicts() const noexcept { return when_full != WhenFull::refuse || evict_after != 0; }
  /// Returns true if a gradient may name a key that it does not add.
  bool has_admission() const noexcept { return admit_after > 1 || admit_probability < 1; }
};

/// How clients send gradients and receive values.
struct Communication {
  std::optional<CombinePushes> combine_pushes;
  bool bfloat16 = false;             // values that cross a network; the variable is float32
  bool stochastic_rounding = false;  // of gradients that are sent as bfloat16; otherwise to nearest
  bool int8_lookups = false;  // the ps send rows for lookups as 8-bit integers; the variable is float32
};

struct VariableDescriptor {
  std::uint32_t id = 0;
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape;
  Optimizer optimizer;
  bool trainable = true;
  VariableAggregation aggregation{};
  VariableSynchronization synchronization{};
  std::uint32_t group = 0;  // id of its update group; 0: none
  ShardMemory memory = ShardMemory::host;
  RowStorage storage;
  Communication communication;
  bool table = false;                 // a dynamic table, with one shard on each ps
  TablePolicy policy;                 // of a table
  std::vector<ShardLocation> shards;  // by first row, div partition
  /// 0: the complete variable. Otherwise this describes shard `part` - 1 of variable `id`, as a variable with
  /// only the rows of that shard.
  std::uint32_t part = 0;

  std::uint64_t rows() const noexcept { return rows_of(shape); }
  /// Elements in a row.
  std::uint64_t width() const noexcept { return width_of(shape); }
  std::uint64_t row_bytes() const noexcept { return width() * size_of(dtype); }
};

/// Returns "rows 0 to 9" or "no rows": the valid rows of a variable, for error messages.
std::string describe_rows(std::uint64_t rows);
/// Returns Error(out_of_range) for an id that is not a row of the variable.
Error no_such_row(std::int64_t id, std::size_t position, const std::string& variable, std::uint64_t rows);

/// Throws Error(invalid_argument) for a variable whose values and slots have 2^63 bytes or more.
void check_bytes(const std::string& name, DType dtype, const std::vector<std::uint64_t>& shape,
                 OptimizerKind optimizer);
/// Throws Error(invalid_argument) for int8 rows of a variable that is not float32 in host memory, or whose
/// rows of float32 would not be larger.
void check_int8_rows(const std::string& name, DType dtype, const std::vector<std::uint64_t>& shape,
                     ShardMemory memory);
/// Throws Error(invalid_argument) for a shard with more than kMaxShardRows of the variable's `all_rows`.
void check_shard_rows(const std::string& name, std::uint64_t shard, std::uint64_t rows,
                      std::uint64_t all_rows);

/// Throws Error(invalid_argument) for an initializer that does not match the variable's shape or dtype.
void check_initializer(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape,
                       const Initializer& initializer);
/// Replaces kSeedFromName by a hash of the variable's name.
Initializer seeded(Initializer initializer, std::string_view name);

/// Throws Error(invalid_argument) if a parameter that the optimizer uses is NaN, infinite in the arithmetic
/// of `dtype`, or out of range. For an integer variable, throws unless the optimizer is SGD with an integer
/// learning rate.
void check_optimizer(const std::string& name, DType dtype, const Optimizer& optimizer);

/// Returns "sgd(learning_rate=0.1)", as in checkpoints and error messages.
std::string describe(const Optimizer& optimizer);
/// The slots that an optimizer keeps beside each value: {"accumulator"}, {"m", "v"}, {}.
std::vector<std::string> slots_of(OptimizerKind kind);
/// Initial value of the elements of a slot. REQUIRES: slot < slots_of(optimizer.kind).size().
double initial_slot_value(const Optimizer& optimizer, std::size_t slot);

}  // namespace capstan::protocol

// descriptor.hpp -- what both ends know of a variable: its shape, and where its shards lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "capstan/dtype.hpp"
#include "capstan/error.hpp"
#include "capstan/initializers.hpp"
#include "capstan/optimizers.hpp"
#include "capstan/variable_options.hpp"

namespace capstan::protocol {

/// A variable is so many rows, along axis 0, of so many elements. A scalar is one row of one.
std::uint64_t rows_of(const std::vector<std::uint64_t>& shape) noexcept;
std::uint64_t width_of(const std::vector<std::uint64_t>& shape) noexcept;
/// The shape in a checkpoint, where a scalar is an array of one element.
std::vector<std::uint64_t> stored_shape(const std::vector<std::uint64_t>& shape);
/// The dtype of an optimizer's slots: float32 for 16-bit variables, whose sums would soon stand still.
DType slot_dtype(DType dtype) noexcept;

/// Most rows of a shard. Pushes, reads and snapshots number a shard's rows by 32 bits, and tables of a GPU
/// need one number more than there are rows.
inline constexpr std::uint64_t kMostShardRows = 0xffff'fffe;

/// In place of a region: nobody but the ps can reach it, which serves what is read.
inline constexpr std::uint64_t kNoRegion = ~std::uint64_t{0};

/// A shard's place in a ps's registered memory.
struct ShardLocation {
  std::int32_t ps = 0;  // index among the ps
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::uint64_t region = 0;  // the ps's number for one of its regions, or kNoRegion
  std::uint64_t offset = 0;  // of the shard's first value in that region
  // The shard's version: a 64-bit word, odd while a push is being applied, one cache line to itself.
  std::uint64_t version_region = 0;
  std::uint64_t version_offset = 0;
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
  std::uint32_t group = 0;  // of UpdateGroup; 0: none
  ShardMemory memory = ShardMemory::host;
  bool stochastic_rounding = false;
  std::vector<ShardLocation> shards;  // by first row, div partition
  /// From 1 on: this is one shard of variable `id` as a variable of its own rows. 0: all of it.
  std::uint32_t part = 0;

  std::uint64_t rows() const noexcept { return rows_of(shape); }
  /// Elements in a row.
  std::uint64_t width() const noexcept { return width_of(shape); }
  std::uint64_t row_bytes() const noexcept { return width() * size_of(dtype); }
};

/// "rows 0 to 9", or "no rows": what a variable has, for an Error(out_of_range) about one that it has not.
std::string describe_rows(std::uint64_t rows);
/// The Error for an id that is none of them.
Error no_such_row(std::int64_t id, std::size_t position, const std::string& variable, std::uint64_t rows);

/// Throws Error(invalid_argument) for a variable whose values and slots have 2^63 bytes or more.
void check_bytes(const std::string& name, DType dtype, const std::vector<std::uint64_t>& shape,
                 OptimizerKind optimizer);
/// Throws Error(invalid_argument) for a shard with more than kMostShardRows of the variable's `all_rows`.
void check_shard_rows(const std::string& name, std::uint64_t shard, std::uint64_t rows,
                      std::uint64_t all_rows);

/// Throws Error(invalid_argument) for an initializer that does not go with a variable's shape or dtype.
void check_initializer(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape,
                       const Initializer& initializer);

/// Throws Error(invalid_argument) for a parameter that the optimizer uses and that is NaN, infinite in the
/// arithmetic of `dtype`, or out of its range; for an integer variable, anything but SGD with a whole
/// learning rate.
void check_optimizer(const std::string& name, DType dtype, const Optimizer& optimizer);

/// "sgd(learning_rate=0.1)": what checkpoints keep and errors show.
std::string describe(const Optimizer& optimizer);
/// The slots that an optimizer keeps beside each value: {"accumulator"}, {"m", "v"}, {}.
std::vector<std::string> slots_of(OptimizerKind kind);
/// What the elements of a new shard's slot are. REQUIRES: slot < slots_of(optimizer.kind).size().
double initial_slot_value(const Optimizer& optimizer, std::size_t slot);

}  // namespace capstan::protocol

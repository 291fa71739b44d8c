// descriptor.hpp -- what both ends know of a variable: its shape, and where its shards lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "capstan/dtype.hpp"
#include "capstan/initializers.hpp"
#include "capstan/optimizers.hpp"

namespace capstan::shard {

/// A shard's place in a ps's registered memory.
struct ShardPlace {
  std::int32_t ps = 0;  // index among the ps
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::uint64_t region = 0;  // the ps's number for one of its regions
  std::uint64_t offset = 0;  // of the shard's first value in that region
  // The shard's version: a 64-bit word, odd while a push is being applied, one cache line to itself.
  std::uint64_t version_region = 0;
  std::uint64_t version_offset = 0;
};

struct VariableDescriptor {
  std::uint32_t id = 0;
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape;  // rank 1 or 2
  Optimizer optimizer;
  std::vector<ShardPlace> shards;  // by first row, div partition

  std::uint64_t rows() const noexcept { return shape.at(0); }
  /// Elements in a row.
  std::uint64_t width() const noexcept { return shape.size() == 2 ? shape[1] : 1; }
  std::uint64_t row_bytes() const noexcept { return width() * size_of(dtype); }
};

/// "sgd(learning_rate=0.1)": what checkpoints keep and errors show.
std::string describe(const Optimizer& optimizer);
/// The slots that an optimizer keeps beside each value: {"accumulator"}, {"m", "v"}, {}.
std::vector<std::string> slots_of(OptimizerKind kind);
/// What the elements of a new shard's slot are. REQUIRES: slot < slots_of(optimizer.kind).size().
double initial_slot_value(const Optimizer& optimizer, std::size_t slot);

}  // namespace capstan::shard

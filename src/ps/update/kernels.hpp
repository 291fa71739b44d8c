// kernels.hpp -- optimizers on rows, vectorised for the CPU that runs them.
#pragma once

#include <cstdint>

#include "base/with_type.hpp"
#include "capstan/optimizers.hpp"

namespace capstan::ps {

/// What one push does to one shard. Rules are elementwise: a "row" may be a part of a row, or several
/// consecutive ones (HostShard, update_in_groups.hpp, 16-bit values). Row i of the gradient belongs to row
/// rows[i] of the shard, or to row first_row + i where `rows` is null. Slots lie as the values do; unused
/// ones are null.
template <class T>
struct Update {
  T* values = nullptr;
  Arithmetic<T>* slot0 = nullptr;  // the first of protocol::slots_of
  Arithmetic<T>* slot1 = nullptr;  // the second
  std::uint64_t width = 0;
  const std::uint32_t* rows = nullptr;
  std::uint64_t first_row = 0;
  std::uint64_t count = 0;
  const T* gradient = nullptr;
  std::int64_t step = 1;  // t of Adam and AdamW
};

/// REQUIRES: row numbers within the shard, and no row twice unless the optimizer is SGD.
void apply(const Optimizer& optimizer, const Update<float>& update);
void apply(const Optimizer& optimizer, const Update<double>& update);
/// In float, block by block, rounded once.
void apply(const Optimizer& optimizer, const Update<float16>& update);
void apply(const Optimizer& optimizer, const Update<bfloat16>& update);
/// SGD alone, in integers: w -= round(learning_rate) g.
void apply(const Optimizer& optimizer, const Update<std::int64_t>& update);
void apply(const Optimizer& optimizer, const Update<std::int32_t>& update);

}  // namespace capstan::ps

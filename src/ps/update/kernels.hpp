// kernels.hpp -- optimizer kernels on rows, vectorized for the CPU at run time.
#pragma once

#include <cstdint>

#include "base/with_type.hpp"
#include "capstan/optimizers.hpp"
#include "gpu/rounding.hpp"

namespace capstan::ps {

/// Update of one shard by one push, or by a part of it. Gradient i belongs to row rows[i] of the shard, or to
/// row first_row + i if `rows` is null. Slots have the layout of the values; unused slots are null. Rules are
/// elementwise, so a "row" may be a part of a row or several consecutive rows (HostShard,
/// update_in_groups.hpp, 16-bit values).
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
  std::int64_t step = 1;        // t of Adam and AdamW
  gpu::Rounding rounding = {};  // of 16-bit values and int8 rows
  /// First element of the shard, and first gradient of the entry. The distances of an element and its
  /// gradient from them determine the random bits, which thus differ if a row occurs twice.
  const T* first_value = nullptr;
  const T* first_gradient = nullptr;
  const std::uint32_t* positions = nullptr;  // of the gradients in `gradient`, in rows; null: 0, 1, 2, ...

  const T* gradient_of(std::uint64_t i) const noexcept {
    return gradient + (positions != nullptr ? positions[i] : i) * width;
  }
};

/// Applies an update. REQUIRES: row numbers within the shard, and no repeated row unless the optimizer is
/// SGD.
void apply(const Optimizer& optimizer, const Update<float>& update);
void apply(const Optimizer& optimizer, const Update<double>& update);
/// Computes in float and rounds each element once. REQUIRES: stochastic rounding has first_value and
/// first_gradient.
void apply(const Optimizer& optimizer, const Update<float16>& update);
void apply(const Optimizer& optimizer, const Update<bfloat16>& update);
/// SGD only, in wrapping integer arithmetic: w -= round(learning_rate) * g.
void apply(const Optimizer& optimizer, const Update<std::int64_t>& update);
void apply(const Optimizer& optimizer, const Update<std::int32_t>& update);

}  // namespace capstan::ps

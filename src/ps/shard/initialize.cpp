// initialize.cpp -- computes initial values from the element's index in the variable.
#include "ps/shard/initialize.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/with_type.hpp"
#include "capstan/error.hpp"
#include "capstan/initializers.hpp"
#include "protocol/descriptor.hpp"
#include "ps/shard/orthogonal.hpp"
#include "ps/shard/philox.hpp"

namespace capstan::ps {
namespace {

template <class T>
T cast(double value) {
  if constexpr (std::is_integral_v<T>) {
    // The double nearest to the largest 64-bit integer is that integer plus one.
    if (!(value < static_cast<double>(std::numeric_limits<T>::max()))) return std::numeric_limits<T>::max();
    if (!(value > static_cast<double>(std::numeric_limits<T>::min()))) return std::numeric_limits<T>::min();
    return static_cast<T>(std::llround(value));
  } else {
    return static_cast<T>(static_cast<Arithmetic<T>>(value));
  }
}

/// Returns the largest number of type T below `bound`.
template <class T>
T below(double bound) {
  T value = cast<T>(bound);
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(value) < bound ? value : std::nextafter(value, -HUGE_VALF);
  } else {
    const auto bits = value.bits();
    if (static_cast<double>(static_cast<float>(value)) < bound) return value;
    if (static_cast<float>(value) == 0) return T::from_bits(0x8001);
    return T::from_bits(static_cast<std::uint16_t>(static_cast<float>(value) > 0 ? bits - 1 : bits + 1));
  }
}

/// Fills `out` with uniform numbers in [a, b), even where rounding to the dtype would yield b.
template <class T>
void fill_uniform(const Initializer& init, std::uint64_t first, std::uint64_t count, T* out) {
  if constexpr (std::is_integral_v<T>) {
    const double low = std::ceil(init.a);
    const double size = std::ceil(init.b) - low;
    for (std::uint64_t i = 0; i < count; ++i) {
      out[i] = cast<T>(low + std::min(std::floor(size * uniform_at(first + i, init.seed)), size - 1));
    }
  } else {
    const double size = init.b - init.a;
    const T last = size > 0 ? std::max(cast<T>(init.a), below<T>(init.b)) : cast<T>(init.a);
    for (std::uint64_t i = 0; i < count; ++i) {
      out[i] = std::min(cast<T>(init.a + size * uniform_at(first + i, init.seed)), last);
    }
  }
}

/// Sets each element i to value(i); a boolean element to value(i) != 0.
template <class T, class Value>
void fill(DType dtype, std::uint64_t first, std::uint64_t count, T* out, const Value& value) {
  if (dtype == DType::boolean) {
    for (std::uint64_t i = 0; i < count; ++i)
      out[i] = static_cast<T>(static_cast<float>(value(first + i) != 0));
  } else {
    for (std::uint64_t i = 0; i < count; ++i) out[i] = cast<T>(value(first + i));
  }
}

template <class T>
void fill_normal(const Initializer& init, std::uint64_t first, std::uint64_t count, T* out) {
  for (std::uint64_t i = 0; i < count;) {
    const std::uint64_t index = first + i;
    const auto pair = normal_pair(index / 2, init.seed);
    if (index % 2 == 0) out[i++] = cast<T>(init.a + init.b * pair[0]);
    if (i < count) out[i++] = cast<T>(init.a + init.b * pair[1]);
  }
}

}  // namespace

void initialize(const Initializer& init, DType dtype, std::uint64_t first, std::uint64_t count, void* out) {
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    auto* to = static_cast<T*>(out);
    switch (init.kind) {
      case InitializerKind::constant:
        return fill(dtype, first, count, to, [&](std::uint64_t) { return init.a; });
      case InitializerKind::uniform:
        if (dtype != DType::boolean) return fill_uniform(init, first, count, to);
        return fill(dtype, first, count, to,
                    [&](std::uint64_t i) { return init.a + (init.b - init.a) * uniform_at(i, init.seed); });
      case InitializerKind::normal:
        if (dtype != DType::boolean) return fill_normal(init, first, count, to);
        return fill(dtype, first, count, to,
                    [&](std::uint64_t i) { return init.a + init.b * normal_pair(i / 2, init.seed)[i % 2]; });
      case InitializerKind::truncated_normal:
        return fill(dtype, first, count, to,
                    [&](std::uint64_t i) { return init.a + init.b * truncated_normal_at(i, init.seed); });
      case InitializerKind::orthogonal:
      case InitializerKind::identity:
        break;
    }
    throw Error(Code::internal, "cannot initialize elements: the initializer depends on the shape");
  });
}

void initialize(const Initializer& init, DType dtype, const std::vector<std::uint64_t>& shape,
                std::uint64_t first_row, std::uint64_t rows, void* out) {
  const std::uint64_t width = protocol::width_of(shape);
  const std::uint64_t first = first_row * width;
  const std::uint64_t count = rows * width;
  if (count == 0) return;
  if (init.kind == InitializerKind::identity) {
    with_type(dtype, [&]<class T>(std::type_identity<T>) {
      fill(dtype, first, count, static_cast<T*>(out),
           [&](std::uint64_t i) { return i / width == i % width ? init.a : 0; });
    });
  } else if (init.kind == InitializerKind::orthogonal) {
    const std::vector<double> matrix =
        orthogonal_matrix(protocol::rows_of(shape) * (width / shape.back()), shape.back(), init.a, init.seed);
    with_type(dtype, [&]<class T>(std::type_identity<T>) {
      fill(dtype, first, count, static_cast<T*>(out), [&](std::uint64_t i) { return matrix[i]; });
    });
  } else {
    initialize(init, dtype, first, count, out);
  }
}

bool must_compute_all_rows(const protocol::CreateShard& shard) noexcept {
  return shard.fill != 0 || shard.initializer.kind == InitializerKind::orthogonal;
}

void initialize(const protocol::CreateShard& shard, std::byte* out) {
  if (shard.fill == 0)
    return initialize(shard.initializer, shard.dtype, shard.shape, shard.first_row, shard.rows, out);
  Partition partition;
  partition.shape.assign(shard.shape.begin(), shard.shape.end());
  partition.partition_shape = partition.shape;
  partition.partition_offset.assign(shard.shape.size(), 0);
  if (!shard.shape.empty()) {
    partition.partition_shape[0] = static_cast<std::int64_t>(shard.rows);
    partition.partition_offset[0] = static_cast<std::int64_t>(shard.first_row);
  }
  detail::registered_fill(shard.fill)(partition, out);
}

}  // namespace capstan::ps

// initialize.cpp -- first values, from the element's index in the whole variable.
#include <cmath>

#include "store/philox.hpp"
#include "store/store.hpp"

namespace capstan::store {
namespace {

template <class T>
T cast(double value) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(std::llround(value));
  return static_cast<T>(value);
}

template <class T>
void fill(const Initializer& init, std::uint64_t first, std::uint64_t count, T* out) {
  switch (init.kind) {
    case InitializerKind::constant:
      for (std::uint64_t i = 0; i < count; ++i) out[i] = cast<T>(init.a);
      return;
    case InitializerKind::uniform:
      for (std::uint64_t i = 0; i < count; ++i) {
        out[i] = cast<T>(init.a + (init.b - init.a) * uniform_at(first + i, init.seed));
      }
      return;
    case InitializerKind::normal:
      for (std::uint64_t i = 0; i < count;) {
        const std::uint64_t index = first + i;
        const auto pair = normal_pair(index / 2, init.seed);
        if (index % 2 == 0) out[i++] = cast<T>(init.a + init.b * pair[0]);
        if (i < count) out[i++] = cast<T>(init.a + init.b * pair[1]);
      }
      return;
  }
}

}  // namespace

void initialize(const Initializer& initializer, DType dtype, std::uint64_t first, std::uint64_t count,
                void* out) {
  switch (dtype) {
    case DType::float32:
      return fill(initializer, first, count, static_cast<float*>(out));
    case DType::float64:
      return fill(initializer, first, count, static_cast<double*>(out));
    case DType::int64:
      return fill(initializer, first, count, static_cast<std::int64_t*>(out));
  }
}

}  // namespace capstan::store

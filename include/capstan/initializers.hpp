// initializers.hpp -- initial values of a variable: from an initializer on the ps, an array or a function.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/buffer.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/dtype.hpp"

namespace capstan {

/// Sent over the wire: add at the end, never renumber.
enum class InitializerKind : std::uint8_t {
  constant = 1,
  uniform = 2,
  normal = 3,
  truncated_normal = 4,
  orthogonal = 5,
  identity = 6,
};

/// The default seed of random initializers: a hash of the variable's name, so that variables of one shape
/// start with different values.
inline constexpr std::uint64_t kSeedFromName = ~std::uint64_t{0};

/// Element i of a variable depends only on the seed and i (counter-based: Philox4x32-10, Salmon et al. 2011),
/// whatever the number of shards.
struct Initializer {
  InitializerKind kind = InitializerKind::constant;
  double a = 0;
  double b = 0;
  std::uint64_t seed = kSeedFromName;
};

namespace initializers {

inline Initializer constant(double value) { return {InitializerKind::constant, value, 0, 0}; }
inline Initializer zeros() { return constant(0); }
inline Initializer ones() { return constant(1); }
/// Uniform in [low, high), in the variable's dtype; integers are equally likely.
inline Initializer uniform(double low, double high, std::uint64_t seed = kSeedFromName) {
  return {InitializerKind::uniform, low, high, seed};
}
inline Initializer normal(double mean, double stddev, std::uint64_t seed = kSeedFromName) {
  return {InitializerKind::normal, mean, stddev, seed};
}
/// Normal distribution whose values more than two `stddev` from `mean` are drawn again.
inline Initializer truncated_normal(double mean, double stddev, std::uint64_t seed = kSeedFromName) {
  return {InitializerKind::truncated_normal, mean, stddev, seed};
}
/// `gain` times a random matrix whose rows, or columns if there are fewer, are orthonormal: Q of the QR
/// decomposition of normal numbers, with signs chosen so that it is uniformly distributed (Mezzadri 2007).
/// The last axis of the variable holds the columns of the matrix, and all other axes together its rows. Every
/// ps that owns a shard computes the complete matrix, in double, at a cost of rows x columns x min(rows,
/// columns). For rank 2 or more and floating-point dtypes.
inline Initializer orthogonal(double gain = 1, std::uint64_t seed = kSeedFromName) {
  return {InitializerKind::orthogonal, gain, 0, seed};
}
/// `gain` on the diagonal of a matrix, 0 elsewhere. For rank 2.
inline Initializer identity(double gain = 1) { return {InitializerKind::identity, gain, 0, 0}; }

}  // namespace initializers

/// The part of a variable that one shard holds.
struct Partition {
  Shape shape;             ///< of the complete variable
  Shape partition_shape;   ///< of this shard; differs from `shape` in axis 0
  Shape partition_offset;  ///< of the shard's first element; zero except in axis 0
};

namespace detail {

/// Writes the elements of a shard to `out`, in row-major order.
using Fill = void (*)(const Partition& partition, void* out);
/// Returns the function's number, from 1 on. Called during static initialization, so the numbers are equal on
/// every rank of one binary.
CAPSTAN_API std::uint32_t register_fill(Fill fill);
/// Throws Error(internal) for an unregistered number.
CAPSTAN_API Fill registered_fill(std::uint32_t number);

template <class T, auto fn>
void fill_partition(const Partition& partition, void* out) {
  fn(partition, std::span<Element<T>>(static_cast<Element<T>*>(out),
                                      static_cast<std::size_t>(elements_of(partition.partition_shape))));
}

template <class T, auto fn>
struct RegisteredFill {
  static const std::uint32_t number;
};
template <class T, auto fn>
const std::uint32_t RegisteredFill<T, fn>::number = register_fill(&fill_partition<T, fn>);

/// Values of a complete variable, as bytes.
struct WholeValue {
  Shape shape;
  std::vector<std::byte> bytes;
  // True: row-major values without a shape of their own, for any shape with the same number of elements.
  bool any_shape = false;

  bool fits(const Shape& given) const {
    return shape == given || (any_shape && elements_of(shape) == elements_of(given));
  }
};

/// Type-erased InitialValue<T>.
struct AnyInitialValue {
  Initializer initializer;
  std::uint32_t fill = 0;             // number of a registered function; 0: none
  std::function<WholeValue()> whole;  // called on the coordinator; null: none
};

}  // namespace detail

/// A number that can initialize a variable of type T. Floating-point numbers cannot initialize integers, and
/// numbers cannot initialize bools.
template <class N, class T>
concept ScalarValue = std::same_as<N, T> ||
    (std::is_arithmetic_v<N> && !std::same_as<N, bool> && !std::same_as<T, bool> &&
     (std::integral<N> || !std::integral<T>));

/// A range of elements, such as a vector or span, but not a Shape.
template <class R, class T>
concept ValueRange = std::ranges::input_range<R> && !std::same_as<std::remove_cvref_t<R>, Shape> &&
                     (std::same_as<std::ranges::range_value_t<R>, T> ||
                      std::same_as<std::ranges::range_value_t<R>, Element<T>>);

/// An initializer, a number, values, an array, a function called on the coordinator that returns an array, or
/// a function that fills each shard on the ps that owns it (see from_partitions).
template <class T>
class InitialValue {
 public:
  /// Zeros.
  InitialValue() = default;
  InitialValue(const Initializer& initializer) { value_.initializer = initializer; }  // NOLINT: implicit
  /// Also determines the variable's shape, unless a shape is given.
  InitialValue(Array<T> array) {  // NOLINT: implicit
    value_.whole = [array = std::move(array)] { return to_whole(array); };
  }
  /// For a scalar variable.
  template <ScalarValue<T> N>
  InitialValue(N number)  // NOLINT: implicit
      : InitialValue(Array<T>::scalar(static_cast<Element<T>>(number))) {}
  /// Values in row-major order; for a variable of rank 1, unless a shape is given.
  template <ValueRange<T> R>
  InitialValue(const R& values) {  // NOLINT: implicit
    value_.whole = [array = Array<T>::vector({std::ranges::begin(values), std::ranges::end(values)})] {
      detail::WholeValue whole = to_whole(array);
      whole.any_shape = true;
      return whole;
    };
  }
  InitialValue(std::initializer_list<T> values) : InitialValue(std::vector<T>(values)) {}
  /// Rows of a matrix, of at least two values each. Throws Error(invalid_argument) for rows of different
  /// lengths.
  InitialValue(std::initializer_list<std::initializer_list<T>> rows) : InitialValue(Array<T>::matrix(rows)) {}
  /// Called once, on the coordinator, when the variable is created.
  template <std::invocable F>
  requires std::is_convertible_v<std::invoke_result_t<F>, Array<T>> InitialValue(
      F function) {  // NOLINT: implicit
    value_.whole = [function = std::move(function)] { return to_whole(function()); };
  }

  const detail::AnyInitialValue& any() const noexcept { return value_; }

 private:
  template <class U, auto fn>
  friend InitialValue<U> from_partitions();

  static detail::WholeValue to_whole(const Array<T>& array) {
    detail::WholeValue whole{array.shape, std::vector<std::byte>(array.values.size() * sizeof(Element<T>)),
                             false};
    if (!whole.bytes.empty()) std::memcpy(whole.bytes.data(), array.values.data(), whole.bytes.size());
    return whole;
  }

  detail::AnyInitialValue value_;
};

/// The element type that an initial value gives a variable, for `Variable("v", value)`.
template <class V>
struct ValueType {};
template <class V>
requires requires { DTypeOf<V>::value; }
struct ValueType<V> {
  using type = V;
};
template <class T>
struct ValueType<Array<T>> {
  using type = T;
};
template <class T>
struct ValueType<std::vector<T>> {
  using type = T;
};
template <class T>
struct ValueType<Buffer<T>> {
  using type = T;
};
template <class V>
using ValueTypeOf = typename ValueType<V>::type;

/// Calls `fn(const Partition&, std::span<Element<T>> out)` once per shard, on the ps that owns it, so that
/// the values of a large table never pass through the coordinator. Creating the variable throws fn's error.
template <class T, auto fn>
InitialValue<T> from_partitions() {
  InitialValue<T> value;
  value.value_.fill = detail::RegisteredFill<T, fn>::number;
  return value;
}

}  // namespace capstan

// reduce.hpp -- reduces the values of several replicas to one: numbers, arrays, and structures of them.
//
// Structures are reduced member by member: std::vector, std::array, std::pair, std::tuple, maps (with equal
// keys) and plain structs. Numbers are added in replica order, so a sum has the same bits in every run.
// 16-bit floating-point numbers are added in float and rounded once. Integers wrap.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/buffer.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/dtype.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

/// The operation of a reduction. For `ReduceOp::SUM` and `ReduceOp::MEAN`, known at compile time, the sum of
/// integers is an integer and their mean a double, as in TensorFlow. For an operation known only at run time
/// (a ReduceOp object or a string), both are doubles.
class CAPSTAN_API ReduceOp {
 public:
  struct Sum {};
  struct Mean {};
  static constexpr Sum SUM{};
  static constexpr Mean MEAN{};

  constexpr ReduceOp(Sum) noexcept {}
  constexpr ReduceOp(Mean) noexcept : mean_(true) {}
  /// "SUM" or "MEAN", in upper or lower case. Throws Error(invalid_argument) for another string.
  ReduceOp(std::string_view word);
  ReduceOp(const char* word) : ReduceOp(std::string_view(word)) {}
  ReduceOp(const std::string& word) : ReduceOp(std::string_view(word)) {}

  constexpr bool mean() const noexcept { return mean_; }
  constexpr std::string_view name() const noexcept { return mean_ ? "MEAN" : "SUM"; }
  friend bool operator==(const ReduceOp&, const ReduceOp&) = default;

 private:
  bool mean_ = false;
};

/// One axis or several: `0`, `-1`, `{0, 1}`, `std::tuple{0, 2}`. Negative axes count from the last. A
/// non-integer axis does not compile.
class CAPSTAN_API Axes {
 public:
  template <std::integral I>
  requires(!std::is_same_v<I, bool>) Axes(I axis) : axes_{static_cast<std::int64_t>(axis)} {}
  Axes(std::initializer_list<std::int64_t> axes) : axes_(axes) {}
  Axes(std::vector<std::int64_t> axes) : axes_(std::move(axes)) {}
  template <std::integral... I>
  Axes(const std::tuple<I...>& axes)
      : axes_(std::apply([](I... axis) { return std::vector<std::int64_t>{axis...}; }, axes)) {}
  template <std::floating_point F>
  Axes(F axis) = delete;

  /// Returns true if no axis is given: values are then reduced across replicas only.
  bool empty() const noexcept { return axes_.empty(); }
  /// Returns, for each axis of an array of rank `rank`, whether it is reduced. Throws Error(invalid_argument)
  /// for an axis that is out of range or given twice.
  std::vector<bool> named(std::size_t rank) const;
  /// " along axis 0, -1"; "" for none.
  std::string along() const;

 private:
  std::vector<std::int64_t> axes_;
};

template <class T>
struct IndexedSlices;
template <class T>
struct Rows;

}  // namespace capstan

namespace capstan::detail {

template <class T>
concept Half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <class T>
concept Integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
/// Types that can be added. As in TensorFlow, bool cannot.
template <class T>
concept Number = Integer<T> || std::is_floating_point_v<T> || Half<T>;

/// An operation whose result keeps the operand's type: for members of a plain struct and for variables.
struct SameType {
  bool is_mean;
  constexpr bool mean() const noexcept { return is_mean; }
};
constexpr bool is_mean(ReduceOp op) noexcept { return op.mean(); }
constexpr bool is_mean(SameType op) noexcept { return op.mean(); }

template <class Op, class T>
using ReducedNumber =
    std::conditional_t<Integer<T> && !std::is_same_v<Op, ReduceOp::Sum> && !std::is_same_v<Op, SameType>,
                       double, T>;

/// The type in which numbers of type T are added: unsigned for integers, so that they wrap without undefined
/// behavior.
template <class T>
struct SumType {
  using type = T;
};
template <Half T>
struct SumType<T> {
  using type = float;
};
template <Integer T>
struct SumType<T> {
  using type = std::uint64_t;
};
template <class T>
using SumOf = typename SumType<T>::type;

template <class Op, class T>
ReducedNumber<Op, T> finish_sum(Op op, SumOf<T> sum, std::int64_t count) {
  using Result = ReducedNumber<Op, T>;
  if constexpr (Integer<T>) {
    const T value = static_cast<T>(sum);
    if (!is_mean(op)) return static_cast<Result>(value);
    if constexpr (std::is_same_v<Result, double>) {
      return static_cast<double>(value) / static_cast<double>(count);
    } else {
      throw Error(Code::invalid_argument,
                  "reduce MEAN: the member is an integer, expected a floating-point type that can hold the "
                  "mean; make the member a double");
    }
  } else {
    return static_cast<Result>(is_mean(op) ? sum / static_cast<SumOf<T>>(count) : sum);
  }
}

template <class T>
using Parts = std::span<const T* const>;

inline Error differ(const std::string& call, const std::string& property, std::size_t replica,
                    const std::string& found, const std::string& first) {
  return Error(Code::invalid_argument, call + ": " + property + " of replica " + std::to_string(replica) +
                                           " is " + found + ", expected " + first + " as on replica 0");
}

/// Reduces one T per replica to a single value: across replicas only, or also along axes if kAlong is true.
template <class Op, bool kAlong, class T>
struct Reduction;

template <class Op, bool kAlong, class T>
auto reduce_parts(Op op, Parts<T> parts, const Axes& axes) {
  if (parts.empty()) throw Error(Code::invalid_argument, "reduce: found no values, expected one per replica");
  return Reduction<Op, kAlong, T>::of(op, parts, axes);
}

template <class Op, bool kAlong, Number T>
struct Reduction<Op, kAlong, T> {
  static auto of(Op op, Parts<T> parts, const Axes& axes) {
    if constexpr (kAlong) static_cast<void>(axes.named(0));
    SumOf<T> sum = static_cast<SumOf<T>>(*parts[0]);
    for (const T* part : parts.subspan(1)) sum += static_cast<SumOf<T>>(*part);
    return finish_sum<Op, T>(op, sum, static_cast<std::int64_t>(parts.size()));
  }
};

/// Sums of an array's elements over some axes or none; `count` is the number of elements in each sum.
template <class T>
struct PartialSums {
  Shape shape;
  std::vector<SumOf<T>> sums;
  std::int64_t count = 1;

  explicit PartialSums(const Array<T>& array) : shape(array.shape), sums(array.size()) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<SumOf<T>>(array.values[i]);
  }
  PartialSums(const Array<T>& array, const std::vector<bool>& summed) {
    std::vector<std::int64_t> steps(array.rank());  // stride in `sums` of each axis of `array`; 0 if summed
    std::int64_t step = 1;
    for (std::size_t axis = array.rank(); axis-- > 0;) {
      if (summed[axis]) {
        count *= array.shape[axis];
        continue;
      }
      shape.insert(shape.begin(), array.shape[axis]);
      steps[axis] = step;
      step *= array.shape[axis];
    }
    sums.resize(static_cast<std::size_t>(step));
    std::vector<std::int64_t> index(array.rank());
    std::int64_t at = 0;
    for (const T& value : array.values) {
      sums[static_cast<std::size_t>(at)] += static_cast<SumOf<T>>(value);
      for (std::size_t axis = array.rank(); axis-- > 0;) {
        at += steps[axis];
        if (++index[axis] < array.shape[axis]) break;
        at -= steps[axis] * array.shape[axis];
        index[axis] = 0;
      }
    }
  }
};

template <class Op, bool kAlong, Number T>
struct Reduction<Op, kAlong, Array<T>> {
  static auto of(Op op, Parts<Array<T>> parts, const Axes& axes) {
    const auto local = [&](const Array<T>& part) {
      if constexpr (kAlong) {
        return PartialSums<T>(part, axes.named(part.rank()));
      } else {
        return PartialSums<T>(part);
      }
    };
    PartialSums<T> total = local(*parts[0]);
    const auto add = [&](std::size_t replica, const Shape& shape, const auto& values) {
      if (shape != total.shape) {
        throw differ("reduce", "the shape", replica, to_string(shape), to_string(total.shape));
      }
      for (std::size_t i = 0; i < values.size(); ++i) total.sums[i] += static_cast<SumOf<T>>(values[i]);
    };
    for (std::size_t replica = 1; replica < parts.size(); ++replica) {
      if constexpr (kAlong) {
        const PartialSums<T> part = local(*parts[replica]);
        add(replica, part.shape, part.sums);
        total.count += part.count;
      } else {
        add(replica, parts[replica]->shape, parts[replica]->values);
        ++total.count;
      }
    }
    Array<ReducedNumber<Op, T>> result(total.shape);
    for (std::size_t i = 0; i < total.sums.size(); ++i) {
      result.values[i] = finish_sum<Op, T>(op, total.sums[i], total.count);
    }
    return result;
  }
};

template <class V>
concept NumberVector = Number<typename V::value_type> &&
    (std::same_as<V, std::vector<typename V::value_type>> || std::same_as<V, Buffer<typename V::value_type>>);

/// A vector of numbers is an array of rank 1: along its axis it is reduced to a number.
template <class Op, bool kAlong, NumberVector V>
struct Reduction<Op, kAlong, V> {
  static auto of(Op op, Parts<V> parts, const Axes& axes) {
    using T = typename V::value_type;
    if constexpr (kAlong) {
      if (axes.empty()) throw Error(Code::invalid_argument, "reduce: found no axis, expected 0 or -1");
    }
    std::vector<Array<T>> arrays;
    for (const V* part : parts) arrays.push_back(Array<T>::vector(*part));
    std::vector<const Array<T>*> pointers;
    for (const Array<T>& array : arrays) pointers.push_back(&array);
    auto result = Reduction<Op, kAlong, Array<T>>::of(op, pointers, axes);
    if constexpr (kAlong) {
      return result.values[0];
    } else {
      return std::move(result.values);
    }
  }
};

/// Reduces one element of each part, which `get` selects: it returns a reference into a part.
template <class Op, bool kAlong, class T, class Get>
auto reduce_element(Op op, Parts<T> parts, const Axes& axes, const Get& get) {
  using Member = std::remove_cvref_t<decltype(get(*parts[0]))>;
  std::vector<const Member*> members;
  for (const T* part : parts) members.push_back(&get(*part));
  return Reduction<Op, kAlong, Member>::of(op, members, axes);
}

template <class T>
void require_sizes(Parts<T> parts, const char* call) {
  for (std::size_t replica = 1; replica < parts.size(); ++replica) {
    if (parts[replica]->size() == parts[0]->size()) continue;
    throw differ(call, "the size", replica, std::to_string(parts[replica]->size()),
                 std::to_string(parts[0]->size()));
  }
}

template <class Op, bool kAlong, class T>
requires(!Number<T>) struct Reduction<Op, kAlong, std::vector<T>> {
  static auto of(Op op, Parts<std::vector<T>> parts, const Axes& axes) {
    require_sizes(parts, "reduce");
    const auto at = [&](std::size_t i) {
      return reduce_element<Op, kAlong>(op, parts, axes,
                                        [i](const auto& part) -> const T& { return part[i]; });
    };
    std::vector<decltype(at(0))> result;
    for (std::size_t i = 0; i < parts[0]->size(); ++i) result.push_back(at(i));
    return result;
  }
};

template <class Op, bool kAlong, class T, std::size_t N>
struct Reduction<Op, kAlong, std::array<T, N>> {
  static auto of(Op op, Parts<std::array<T, N>> parts, const Axes& axes) {
    const auto at = [&](std::size_t i) {
      return reduce_element<Op, kAlong>(op, parts, axes,
                                        [i](const auto& part) -> const T& { return part[i]; });
    };
    std::array<decltype(at(0)), N> result{};
    for (std::size_t i = 0; i < N; ++i) result[i] = at(i);
    return result;
  }
};

template <class Op, bool kAlong, class... T>
struct Reduction<Op, kAlong, std::tuple<T...>> {
  static auto of(Op op, Parts<std::tuple<T...>> parts, const Axes& axes) {
    return [&]<std::size_t... k>(std::index_sequence<k...>) {
      return std::make_tuple(reduce_element<Op, kAlong>(
          op, parts, axes, [](const auto& part) -> const auto& { return std::get<k>(part); })...);
    }
    (std::index_sequence_for<T...>{});
  }
};

template <class Op, bool kAlong, class A, class B>
struct Reduction<Op, kAlong, std::pair<A, B>> {
  static auto of(Op op, Parts<std::pair<A, B>> parts, const Axes& axes) {
    return std::make_pair(reduce_element<Op, kAlong>(
                              op, parts, axes, [](const auto& p) -> const auto& { return p.first; }),
                          reduce_element<Op, kAlong>(
                              op, parts, axes, [](const auto& p) -> const auto& { return p.second; }));
  }
};

template <template <class...> class Map, class Op, bool kAlong, class K, class V>
auto reduce_maps(Op op, Parts<Map<K, V>> parts, const Axes& axes) {
  require_sizes(parts, "reduce");
  const auto at = [&](const K& key) {
    return reduce_element<Op, kAlong>(op, parts, axes, [&](const Map<K, V>& part) -> const V& {
      const auto found = part.find(key);
      if (found == part.end()) {
        throw Error(Code::invalid_argument, "reduce: the maps of the replicas have different keys");
      }
      return found->second;
    });
  };
  Map<K, decltype(at(std::declval<const K&>()))> result;
  for (const auto& [key, value] : *parts[0]) result.emplace(key, at(key));
  return result;
}

template <class Op, bool kAlong, class K, class V>
struct Reduction<Op, kAlong, std::map<K, V>> {
  static auto of(Op op, Parts<std::map<K, V>> parts, const Axes& axes) {
    return reduce_maps<std::map, Op, kAlong, K, V>(op, parts, axes);
  }
};
template <class Op, bool kAlong, class K, class V>
struct Reduction<Op, kAlong, std::unordered_map<K, V>> {
  static auto of(Op op, Parts<std::unordered_map<K, V>> parts, const Axes& axes) {
    return reduce_maps<std::unordered_map, Op, kAlong, K, V>(op, parts, axes);
  }
};

/// Gradients of rows: their sum is their concatenation. If several replicas name a row, its gradients are
/// added when they are applied.
template <class Op, bool kAlong, Number T>
struct Reduction<Op, kAlong, IndexedSlices<T>> {
  static auto of(Op op, Parts<IndexedSlices<T>> parts, const Axes&) {
    static_assert(!kAlong, "IndexedSlices are reduced across replicas alone, without an axis");
    IndexedSlices<ReducedNumber<Op, T>> result;
    const auto count = static_cast<std::int64_t>(parts.size());
    for (const IndexedSlices<T>* part : parts) {
      result.ids.insert(result.ids.end(), part->ids.begin(), part->ids.end());
      for (const T value : part->values) {
        result.values.push_back(finish_sum<Op, T>(op, static_cast<SumOf<T>>(value), count));
      }
    }
    return result;
  }
};

template <class Op, bool kAlong, Number T>
struct Reduction<Op, kAlong, Rows<T>> {
  static auto of(Op op, Parts<Rows<T>> parts, const Axes& axes) {
    for (const Rows<T>* part : parts) {
      if (part->width == parts[0]->width) continue;
      throw Error(Code::invalid_argument, "reduce: the rows of the replicas have different widths");
    }
    auto values = reduce_element<Op, kAlong>(
        op, parts, axes, [](const auto& p) -> const auto& { return p.values; });
    static_assert(!kAlong, "rows are reduced across replicas alone, without an axis");
    using Sum = ReducedNumber<Op, T>;
    return Rows<Sum>{Buffer<Sum>(values), parts[0]->width};
  }
};

/// Plain structs, which are reduced member by member.
template <class T>
concept Struct = std::is_aggregate_v<T> && !IsStdArray<T>::value && !std::is_array_v<T>;

/// A pointer to member k of a struct.
template <std::size_t k, class T>
auto member(T& value) {
  return with_members(value, [](auto&... members) { return &std::get<k>(std::tie(members...)); });
}

template <class Op, bool kAlong, Struct T>
struct Reduction<Op, kAlong, T> {
  static T of(Op op, Parts<T> parts, const Axes& axes) {
    T result = *parts[0];
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      ((*member<k>(result) = reduce_element<SameType, kAlong>(
            SameType{is_mean(op)}, parts, axes,
            [](const T& part) -> const auto& { return *member<k>(part); })),
       ...);
    }
    (std::make_index_sequence<count_members<T>()>{});
    return result;
  }
};

}  // namespace capstan::detail

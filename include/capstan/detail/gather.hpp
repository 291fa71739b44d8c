// gather.hpp -- the arrays of several replicas become one, end to end along an axis, in the order of the
// replicas.
//
// Structures are gathered member by member, as in reduce.hpp. A vector of numbers, bools or words is an array
// of rank 1.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capstan/detail/export.hpp"
#include "capstan/detail/reduce.hpp"

namespace capstan::detail {

/// Elements of a vector that is an array of rank 1.
template <class T>
concept Scalar = Number<T> || std::is_same_v<T, bool> || std::is_same_v<T, std::string>;

template <class T>
struct Gathering {
  static T of(Parts<T>, std::int64_t) {
    throw Error(Code::invalid_argument,
                "gather: a scalar has no axis to gather along; give an array of rank 1 or more");
  }
};

template <class T>
T gather_parts(Parts<T> parts, std::int64_t axis) {
  if (parts.empty()) throw Error(Code::invalid_argument, "gather: there are values of no replica");
  return Gathering<T>::of(parts, axis);
}

/// The shape of the whole. Throws Error(invalid_argument) for parts that do not fit together.
CAPSTAN_API Shape gathered_shape(std::span<const Shape* const> shapes, std::int64_t axis);

template <class T>
struct Gathering<Array<T>> {
  static Array<T> of(Parts<Array<T>> parts, std::int64_t axis) {
    std::vector<const Shape*> shapes;
    for (const Array<T>* part : parts) shapes.push_back(&part->shape);
    Array<T> whole(gathered_shape(shapes, axis));
    const auto along =
        static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(whole.rank()) : axis);
    std::size_t outer = 1;
    for (std::size_t i = 0; i < along; ++i) outer *= static_cast<std::size_t>(whole.shape[i]);
    auto out = whole.values.begin();
    for (std::size_t i = 0; i < outer; ++i) {
      for (const Array<T>* part : parts) {
        const auto block = static_cast<std::ptrdiff_t>(part->size() / outer);
        out = std::copy_n(part->values.begin() + static_cast<std::ptrdiff_t>(i) * block, block, out);
      }
    }
    return whole;
  }
};

template <Scalar T>
struct Gathering<std::vector<T>> {
  static std::vector<T> of(Parts<std::vector<T>> parts, std::int64_t axis) {
    const Shape any{0};
    const Shape* const shape = &any;
    static_cast<void>(gathered_shape({&shape, 1}, axis));
    std::vector<T> whole;
    for (const std::vector<T>* part : parts) whole.insert(whole.end(), part->begin(), part->end());
    return whole;
  }
};

template <class T>
struct Gathering<IndexedSlices<T>> {
  static IndexedSlices<T> of(Parts<IndexedSlices<T>>, std::int64_t) {
    throw Error(Code::unimplemented, "gather does not support IndexedSlices");
  }
};

template <class T, class Get>
auto gather_element(Parts<T> parts, std::int64_t axis, const Get& get) {
  using Member = std::remove_cvref_t<decltype(get(*parts[0]))>;
  std::vector<const Member*> members;
  for (const T* part : parts) members.push_back(&get(*part));
  return Gathering<Member>::of(members, axis);
}

template <class T>
requires(!Scalar<T>) struct Gathering<std::vector<T>> {
  static std::vector<T> of(Parts<std::vector<T>> parts, std::int64_t axis) {
    require_sizes(parts, "gather");
    std::vector<T> whole;
    for (std::size_t i = 0; i < parts[0]->size(); ++i) {
      whole.push_back(gather_element(parts, axis, [i](const auto& part) -> const T& { return part[i]; }));
    }
    return whole;
  }
};

template <class T, std::size_t N>
struct Gathering<std::array<T, N>> {
  static std::array<T, N> of(Parts<std::array<T, N>> parts, std::int64_t axis) {
    std::array<T, N> whole{};
    for (std::size_t i = 0; i < N; ++i) {
      whole[i] = gather_element(parts, axis, [i](const auto& part) -> const T& { return part[i]; });
    }
    return whole;
  }
};

template <class... T>
struct Gathering<std::tuple<T...>> {
  static std::tuple<T...> of(Parts<std::tuple<T...>> parts, std::int64_t axis) {
    return [&]<std::size_t... k>(std::index_sequence<k...>) {
      return std::tuple<T...>(gather_element(
          parts, axis, [](const auto& part) -> const auto& { return std::get<k>(part); })...);
    }
    (std::index_sequence_for<T...>{});
  }
};

template <class A, class B>
struct Gathering<std::pair<A, B>> {
  static std::pair<A, B> of(Parts<std::pair<A, B>> parts, std::int64_t axis) {
    return {gather_element(
                parts, axis, [](const auto& part) -> const auto& { return part.first; }),
            gather_element(
                parts, axis, [](const auto& part) -> const auto& { return part.second; })};
  }
};

template <class Map>
struct MapGathering {
  static Map of(Parts<Map> parts, std::int64_t axis) {
    require_sizes(parts, "gather");
    Map whole;
    for (const auto& entry : *parts[0]) {
      const auto& key = entry.first;
      whole.emplace(key, gather_element(
                             parts, axis, [&](const Map& part) -> const auto& {
                               const auto found = part.find(key);
                               if (found == part.end()) {
                                 throw Error(Code::invalid_argument,
                                             "gather: the maps of the replicas have different keys");
                               }
                               return found->second;
                             }));
    }
    return whole;
  }
};
template <class K, class V>
struct Gathering<std::map<K, V>> : MapGathering<std::map<K, V>> {};
template <class K, class V>
struct Gathering<std::unordered_map<K, V>> : MapGathering<std::unordered_map<K, V>> {};

template <Struct T>
struct Gathering<T> {
  static T of(Parts<T> parts, std::int64_t axis) {
    T whole = *parts[0];
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      ((*member<k>(whole) = gather_element(
            parts, axis, [](const T& part) -> const auto& { return *member<k>(part); })),
       ...);
    }
    (std::make_index_sequence<count_members<T>()>{});
    return whole;
  }
};

}  // namespace capstan::detail

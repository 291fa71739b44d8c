// gather.hpp -- concatenates the arrays of several replicas along an axis, in replica order.
//
// Structures are gathered member by member, as in reduce.hpp. A vector of numbers, bools or strings is an
// array of rank 1.
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

/// Element types for which a vector is an array of rank 1.
template <class T>
concept Scalar = Number<T> || std::is_same_v<T, bool> || std::is_same_v<T, std::string>;

template <class T>
struct Gathering {
  static T of(Parts<T>, std::int64_t) {
    throw Error(Code::invalid_argument, "gather: found a scalar, expected an array of rank 1 or more");
  }
};

template <class T>
T gather_parts(Parts<T> parts, std::int64_t axis) {
  if (parts.empty()) throw Error(Code::invalid_argument, "gather: found no values, expected one per replica");
  return Gathering<T>::of(parts, axis);
}

/// Returns the shape of the concatenation. Throws Error(invalid_argument) for incompatible shapes.
CAPSTAN_API Shape gathered_shape(std::span<const Shape* const> shapes, std::int64_t axis);

template <class T>
struct Gathering<Array<T>> {
  static Array<T> of(Parts<Array<T>> parts, std::int64_t axis) {
    std::vector<const Shape*> shapes;
    for (const Array<T>* part : parts) shapes.push_back(&part->shape);
    Array<T> result(gathered_shape(shapes, axis));
    const auto along =
        static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(result.rank()) : axis);
    std::size_t outer = 1;
    for (std::size_t i = 0; i < along; ++i) outer *= static_cast<std::size_t>(result.shape[i]);
    auto out = result.values.begin();
    for (std::size_t i = 0; i < outer; ++i) {
      for (const Array<T>* part : parts) {
        const auto block = static_cast<std::ptrdiff_t>(part->size() / outer);
        out = std::copy_n(part->values.begin() + static_cast<std::ptrdiff_t>(i) * block, block, out);
      }
    }
    return result;
  }
};

template <Scalar T>
struct Gathering<std::vector<T>> {
  static std::vector<T> of(Parts<std::vector<T>> parts, std::int64_t axis) {
    const Shape any{0};
    const Shape* const shape = &any;
    static_cast<void>(gathered_shape({&shape, 1}, axis));  // rejects an axis that a vector does not have
    std::vector<T> result;
    for (const std::vector<T>* part : parts) result.insert(result.end(), part->begin(), part->end());
    return result;
  }
};

template <Scalar T>
struct Gathering<Buffer<T>> {
  static Buffer<T> of(Parts<Buffer<T>> parts, std::int64_t axis) {
    std::vector<std::vector<T>> vectors;
    for (const Buffer<T>* part : parts) vectors.push_back(*part);
    std::vector<const std::vector<T>*> pointers;
    for (const std::vector<T>& vector : vectors) pointers.push_back(&vector);
    return Buffer<T>(Gathering<std::vector<T>>::of(pointers, axis));
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
    std::vector<T> result;
    for (std::size_t i = 0; i < parts[0]->size(); ++i) {
      result.push_back(gather_element(parts, axis, [i](const auto& part) -> const T& { return part[i]; }));
    }
    return result;
  }
};

template <class T, std::size_t N>
struct Gathering<std::array<T, N>> {
  static std::array<T, N> of(Parts<std::array<T, N>> parts, std::int64_t axis) {
    std::array<T, N> result{};
    for (std::size_t i = 0; i < N; ++i) {
      result[i] = gather_element(parts, axis, [i](const auto& part) -> const T& { return part[i]; });
    }
    return result;
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
    Map result;
    for (const auto& entry : *parts[0]) {
      const auto& key = entry.first;
      result.emplace(key, gather_element(
                              parts, axis, [&](const Map& part) -> const auto& {
                                const auto found = part.find(key);
                                if (found == part.end()) {
                                  throw Error(Code::invalid_argument,
                                              "gather: the maps of the replicas have different keys");
                                }
                                return found->second;
                              }));
    }
    return result;
  }
};
template <class K, class V>
struct Gathering<std::map<K, V>> : MapGathering<std::map<K, V>> {};
template <class K, class V>
struct Gathering<std::unordered_map<K, V>> : MapGathering<std::unordered_map<K, V>> {};

template <Struct T>
struct Gathering<T> {
  static T of(Parts<T> parts, std::int64_t axis) {
    T result = *parts[0];
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      ((*member<k>(result) = gather_element(
            parts, axis, [](const T& part) -> const auto& { return *member<k>(part); })),
       ...);
    }
    (std::make_index_sequence<count_members<T>()>{});
    return result;
  }
};

}  // namespace capstan::detail

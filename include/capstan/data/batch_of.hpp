// batch_of.hpp -- BatchOf and Batch: types that have a size and can be divided and concatenated.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <iterator>
#include <tuple>
#include <utility>

#include "capstan/array.hpp"
#include "capstan/error.hpp"

namespace capstan {

/// Customization point: the number of examples in a batch, a slice of it, and concatenation. Defined for
/// std::vector, Array (along axis 0), and pairs and tuples of batches of equal size.
template <class B>
struct BatchOf;

template <class B>
concept Batch = requires(const B& batch, B& whole, B part) {
  { BatchOf<B>::size(batch) } -> std::convertible_to<std::int64_t>;
  { BatchOf<B>::slice(batch, std::int64_t{}, std::int64_t{}) } -> std::same_as<B>;
  BatchOf<B>::append(whole, std::move(part));
};

template <class T>
struct BatchOf<std::vector<T>> {
  static std::int64_t size(const std::vector<T>& batch) { return static_cast<std::int64_t>(batch.size()); }
  static std::vector<T> slice(const std::vector<T>& batch, std::int64_t from, std::int64_t to) {
    return {batch.begin() + from, batch.begin() + to};
  }
  static void append(std::vector<T>& batch, std::vector<T> part) {
    batch.insert(batch.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  }
};

template <class T>
struct BatchOf<Array<T>> {
  static std::int64_t size(const Array<T>& batch) {
    if (batch.rank() == 0) {
      throw Error(Code::invalid_argument,
                  "batch: found a scalar, expected an array; batch the dataset before distributing it");
    }
    return batch.shape[0];
  }
  static Array<T> slice(const Array<T>& batch, std::int64_t from, std::int64_t to) {
    const std::int64_t width = row(batch);
    Shape shape = batch.shape;
    shape[0] = to - from;
    return Array<T>(std::move(shape),
                    {batch.values.begin() + from * width, batch.values.begin() + to * width});
  }
  static void append(Array<T>& batch, Array<T> part) {
    if (!std::equal(batch.shape.begin() + 1, batch.shape.end(), part.shape.begin() + 1, part.shape.end())) {
      throw Error(Code::invalid_argument, "batch: found arrays of shapes " + to_string(batch.shape) +
                                              " and " + to_string(part.shape) +
                                              ", expected equal shapes after axis 0");
    }
    batch.shape[0] += part.shape[0];
    batch.values.insert(batch.values.end(), part.values.begin(), part.values.end());
  }

 private:
  static std::int64_t row(const Array<T>& batch) {
    return elements_of(Shape(batch.shape.begin() + 1, batch.shape.end()));
  }
};

namespace detail {

template <class Tuple, class... B>
struct TupleBatch {
  static std::int64_t size(const Tuple& batch) {
    const auto sizes = std::apply(
        [](const B&... part) { return std::array<std::int64_t, sizeof...(B)>{BatchOf<B>::size(part)...}; },
        batch);
    for (const std::int64_t other : sizes) {
      if (other != sizes[0]) {
        throw Error(Code::invalid_argument, "batch: found parts of " + std::to_string(sizes[0]) + " and " +
                                                std::to_string(other) + " examples, expected equal numbers");
      }
    }
    return sizes[0];
  }
  static Tuple slice(const Tuple& batch, std::int64_t from, std::int64_t to) {
    return std::apply([&](const B&... part) { return Tuple{BatchOf<B>::slice(part, from, to)...}; }, batch);
  }
  static void append(Tuple& batch, Tuple part) { append_parts(batch, part, std::index_sequence_for<B...>()); }

 private:
  template <std::size_t... I>
  static void append_parts(Tuple& batch, Tuple& part, std::index_sequence<I...>) {
    (BatchOf<B>::append(std::get<I>(batch), std::move(std::get<I>(part))), ...);
  }
};

}  // namespace detail

template <Batch A, Batch B>
struct BatchOf<std::pair<A, B>> : detail::TupleBatch<std::pair<A, B>, A, B> {};
template <Batch... B>
struct BatchOf<std::tuple<B...>> : detail::TupleBatch<std::tuple<B...>, B...> {};

}  // namespace capstan

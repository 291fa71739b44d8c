// dataset.hpp -- what a worker reads batches from.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "capstan/error.hpp"

namespace capstan {

/// A stream of batches on one worker, made there by the function that `create_per_worker_dataset` was given.
/// Used by one closure at a time.
template <class T>
class Iterator {
 public:
  /// `next` gives batches until it gives nothing.
  explicit Iterator(std::function<std::optional<T>()> next) : next_(std::move(next)) {}

  /// Throws Error(out_of_range) at the end.
  T next() {
    if (auto value = next_()) return std::move(*value);
    throw Error(Code::out_of_range, "end of the dataset");
  }
  std::optional<T> try_next() { return next_(); }

 private:
  std::function<std::optional<T>()> next_;
};

/// The elements of a vector in order, then the end; or for ever.
template <class T>
Iterator<T> iterate(std::vector<T> elements, bool repeat = false) {
  return Iterator<T>(
      [elements = std::move(elements), at = std::size_t{0}, repeat]() mutable -> std::optional<T> {
        if (at == elements.size() && repeat) at = 0;
        if (at >= elements.size()) return std::nullopt;
        return elements[at++];
      });
}

}  // namespace capstan

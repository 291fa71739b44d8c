// const_span.hpp -- ConstSpan: a read-only span that also accepts a braced list.
#pragma once

#include <initializer_list>
#include <span>

namespace capstan {

/// std::span<const T> with the initializer-list constructor of C++26: `v.assign({1, 2, 3})`. For parameters
/// only: a braced list lives until the end of the full expression.
template <class T>
class ConstSpan : public std::span<const T> {
 public:
  using std::span<const T>::span;
  ConstSpan() = default;
  ConstSpan(std::span<const T> elements) : std::span<const T>(elements) {}  // NOLINT: implicit
  ConstSpan(std::initializer_list<T> list) : std::span<const T>(list.begin(), list.size()) {}
};

}  // namespace capstan

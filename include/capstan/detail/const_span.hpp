// const_span.hpp -- elements that a call reads: a span that also takes a list in braces.
#pragma once

#include <initializer_list>
#include <span>

namespace capstan {

/// std::span<const T> with the constructor that C++26 gives it: `v.assign({1, 2, 3})`. For parameters alone,
/// since a list lives until the end of the statement that it is written in.
template <class T>
class ConstSpan : public std::span<const T> {
 public:
  using std::span<const T>::span;
  ConstSpan() = default;
  ConstSpan(std::span<const T> elements) : std::span<const T>(elements) {}  // NOLINT: implicit
  ConstSpan(std::initializer_list<T> list) : std::span<const T>(list.begin(), list.size()) {}
};

}  // namespace capstan

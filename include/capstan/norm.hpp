// norm.hpp -- clipping rows to an L2 norm, and the gradient through it.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

#include "capstan/half.hpp"

namespace capstan {

template <class T>
concept Floating = std::is_floating_point_v<T> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

/// What elements are added up in: 16-bit numbers and float in float.
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// An element as a double.
template <class T>
double widened(T element) {
  return static_cast<double>(static_cast<Accumulator<T>>(element));
}

template <class T>
double l2_norm(std::span<const T> row) {
  double squares = 0;
  for (const T element : row) squares += widened(element) * widened(element);
  return std::sqrt(squares);
}

/// As tf.clip_by_norm: a row whose norm is larger becomes row * max_norm / norm; others stay as they are.
/// `rows` has rows of `width` elements, one after the other.
template <class T>
void clip_by_norm(std::span<T> rows, std::size_t width, double max_norm) {
  for (std::size_t at = 0; at < rows.size(); at += width) {
    const std::span<T> row = rows.subspan(at, width);
    const double norm = l2_norm<T>(row);
    if (!(norm > max_norm)) continue;
    for (T& element : row) {
      element = static_cast<T>(static_cast<Accumulator<T>>(widened(element) * max_norm / norm));
    }
  }
}

/// Turns gradients of clipped rows into gradients of the rows as they were: what points along a row is lost,
/// the rest shrinks as the row did.
template <class T>
void clip_by_norm_gradient(std::span<const T> rows, std::size_t width, double max_norm,
                           std::span<Accumulator<T>> gradient) {
  for (std::size_t at = 0; at < rows.size(); at += width) {
    const std::span<const T> row = rows.subspan(at, width);
    const std::span<Accumulator<T>> change = gradient.subspan(at, width);
    const double norm = l2_norm<T>(row);
    if (!(norm > max_norm)) continue;
    double along = 0;
    for (std::size_t i = 0; i < width; ++i) along += widened(change[i]) * widened(row[i]) / norm;
    for (std::size_t i = 0; i < width; ++i) {
      const double across = widened(change[i]) - along * widened(row[i]) / norm;
      change[i] = static_cast<Accumulator<T>>(across * max_norm / norm);
    }
  }
}

}  // namespace capstan

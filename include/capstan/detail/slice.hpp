// slice.hpp -- Python-style indexing of a variable that reads only the rows it needs; rows and elements by
// id.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/detail/const_span.hpp"
#include "capstan/detail/export.hpp"

namespace capstan {

/// Python's `start:stop:step`: `Slice{.stop = -1}` is `:-1`. A negative bound counts from the end; bounds
/// past the ends are clamped.
struct Slice {
  std::optional<std::int64_t> start = {};
  std::optional<std::int64_t> stop = {};
  std::int64_t step = 1;
};

/// Python's `...`: all axes that the other indices do not cover.
struct Ellipsis {};
inline constexpr Ellipsis ellipsis{};  // NOLINT(readability-identifier-naming)
/// numpy.newaxis: an axis of size 1 in the result.
struct NewAxis {};
inline constexpr NewAxis newaxis{};  // NOLINT(readability-identifier-naming)

/// A slice resolved against an axis of known size: `count` positions start, start + step, ..., all within the
/// axis.
struct CAPSTAN_API AxisRange {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;

  std::int64_t operator[](std::int64_t i) const noexcept { return start + i * step; }
  friend bool operator==(const AxisRange&, const AxisRange&) = default;

  /// REQUIRES: size >= 0. Throws Error(invalid_argument) for a step of 0.
  static AxisRange resolve(const Slice& slice, std::int64_t size);
};

template <class I>
concept AxisPosition = std::integral<I> && !std::same_as<I, bool>;

/// An index for one axis or more. An integer removes its axis and a Slice keeps it. A mask (an array of bool)
/// of rank n replaces n axes by one, which has the positions where the mask is true. Other types, such as
/// arrays of integers, do not compile: use `sparse_read` or `gather_nd`.
class Index {
 public:
  using Any = std::variant<std::int64_t, Slice, Ellipsis, NewAxis, Array<bool>>;

  template <AxisPosition I>
  Index(I position)  // NOLINT: an integer is an index
      : value_(std::in_range<std::int64_t>(position) ? static_cast<std::int64_t>(position)
                                                     : std::numeric_limits<std::int64_t>::max()) {}
  Index(Slice slice) : value_(slice) {}                 // NOLINT
  Index(Ellipsis all) : value_(all) {}                  // NOLINT
  Index(NewAxis axis) : value_(axis) {}                 // NOLINT
  Index(Array<bool> mask) : value_(std::move(mask)) {}  // NOLINT
  const Any& value() const noexcept { return value_; }

 private:
  Any value_;
};

/// The rows that an indexing operation needs, and the elements to take from them. The elements are taken in
/// pieces, which are runs of consecutive elements; all pieces have the same length.
struct CAPSTAN_API Selection {
  Shape shape;  ///< shape of the result
  /// Rows to read: `rows`, without duplicates, or, if it is empty, [first_row, first_row + row_count).
  std::int64_t first_row = 0;
  std::int64_t row_count = 0;
  std::vector<std::int64_t> rows;
  /// True if the result is the rows as read. The fields below are then unset.
  bool verbatim = false;
  std::vector<std::int64_t> starts;   ///< positions in the rows read, in elements
  std::vector<std::int64_t> offsets;  ///< distances from each start to its pieces, in elements
  std::int64_t piece = 0;             ///< length of a piece in elements

  /// Throws Error naming the variable: out_of_range for an integer outside of its axis; invalid_argument for
  /// a step of 0, more indices than axes, two ellipses or masks, or a mask whose shape differs from its axes.
  Selection(const std::string& variable, const Shape& of, std::span<const Index> indices);
};

/// The shape of a variable.
template <class V>
Shape shape_of(const V& variable) {
  const auto& sizes = variable.shape();
  return Shape(sizes.begin(), sizes.end());
}

/// Python's `variable[indices...]`: `read_slice(v, Slice{.start = 2, .step = 2}, ellipsis, -1)`. Axes without
/// an index are returned complete. Reads only the rows that it needs: consecutive rows by one pull, others by
/// one lookup, none if the result is empty. The axis of a mask keeps its position among the indices. Throws
/// Error as Selection does, before any request is sent, and the errors of the reads.
template <class V>
Array<typename V::value_type> read_slice(const V& variable, std::span<const Index> indices) {
  using T = typename V::value_type;
  const Selection selection(variable.name(), shape_of(variable), indices);
  Array<T> out(selection.shape);
  if (out.size() == 0) return out;
  std::vector<Element<T>> rows(
      selection.verbatim ? 0 : static_cast<std::size_t>(selection.row_count) * variable.width());
  const std::span<Element<T>> into = selection.verbatim ? out.values : rows;
  if (selection.rows.empty()) {
    variable.pull(static_cast<std::uint64_t>(selection.first_row), into);
  } else {
    variable.lookup(selection.rows, into);
  }
  if (selection.verbatim) return out;
  auto to = out.values.begin();
  for (const std::int64_t start : selection.starts) {
    for (const std::int64_t offset : selection.offsets) {
      to = std::copy_n(rows.begin() + start + offset, selection.piece, to);
    }
  }
  return out;
}

template <class V, std::convertible_to<Index>... I>
Array<typename V::value_type> read_slice(const V& variable, const I&... indices) {
  return read_slice(variable, std::span<const Index>(std::vector<Index>{indices...}));
}

/// The shape of a read of rows `ids`: ids.shape + variable.shape[1:]. Throws Error(invalid_argument) for a
/// scalar variable, which has no rows.
CAPSTAN_API Shape shape_of_rows(const std::string& variable, const Shape& of, const Shape& ids);

/// Returns the rows `ids`, in that order, with shape ids.shape + variable.shape[1:]. Throws Error:
/// out_of_range for a row that does not exist, before any request is sent; invalid_argument for a scalar
/// variable.
template <class V>
Array<typename V::value_type> sparse_read(const V& variable, const Array<std::int64_t>& ids) {
  Array<typename V::value_type> out(shape_of_rows(variable.name(), shape_of(variable), ids.shape));
  if (!ids.values.empty()) variable.lookup(ids.values, std::span(out.values));
  return out;
}
template <class V>
Array<typename V::value_type> sparse_read(const V& variable, ConstSpan<std::int64_t> ids) {
  return sparse_read(variable, Array<std::int64_t>::vector({ids.begin(), ids.end()}));
}

/// The rows and pieces that gather_nd reads.
struct CAPSTAN_API GatherPlan {
  Shape shape;                       ///< shape of the result
  std::vector<std::int64_t> rows;    ///< ascending, without duplicates
  std::vector<std::int64_t> starts;  ///< start of each piece, in elements of the rows read
  std::int64_t piece = 0;            ///< length of a piece in elements
  GatherPlan(const std::string& variable, const Shape& of, const Array<std::int64_t>& positions);
};

/// As tf.gather_nd: the last axis of `positions`, of size k, holds positions on the first k axes. Returns an
/// array of shape positions.shape[:-1] + variable.shape[k:]. Reads each row once. Throws Error, before any
/// request is sent: out_of_range for a position below 0 or past its axis, invalid_argument for k greater than
/// the variable's rank.
template <class V>
Array<typename V::value_type> gather_nd(const V& variable, const Array<std::int64_t>& positions) {
  using T = typename V::value_type;
  const GatherPlan plan(variable.name(), shape_of(variable), positions);
  Array<T> out(plan.shape);
  if (out.size() == 0) return out;
  std::vector<Element<T>> rows(plan.rows.size() * variable.width());
  variable.lookup(plan.rows, std::span(rows));
  auto to = out.values.begin();
  for (const std::int64_t start : plan.starts) to = std::copy_n(rows.begin() + start, plan.piece, to);
  return out;
}

}  // namespace capstan

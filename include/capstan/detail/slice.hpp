// slice.hpp -- Python-style indexing of a variable, reading only the rows that it needs; rows and elements by
// their ids.
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

/// Python's `...`: all the axes that the other indices leave.
struct Ellipsis {};
inline constexpr Ellipsis ellipsis{};  // NOLINT(readability-identifier-naming)
/// numpy.newaxis: an axis of size 1 in the result.
struct NewAxis {};
inline constexpr NewAxis newaxis{};  // NOLINT(readability-identifier-naming)

/// A slice of an axis of known size: the positions start, start + step, ..., `count` of them, all on the
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

/// What may stand for an axis: an integer drops it, a Slice keeps it, a mask (an array of bool) takes as many
/// axes as it has and makes one of the places where it is true. Other types, arrays of integers among them,
/// do not compile; `sparse_read` and `gather_nd` take those.
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

/// Which rows an indexing needs, and which of their elements. "Pieces" are equally long runs of elements.
struct CAPSTAN_API Selection {
  Shape shape;  ///< of the result
  /// Rows to read: [first_row, first_row + row_count) when `rows` is empty, else `rows`, each named once.
  std::int64_t first_row = 0;
  std::int64_t row_count = 0;
  std::vector<std::int64_t> rows;
  /// The rows that were read are the result as they lie; what follows is then not filled in.
  bool verbatim = false;
  std::vector<std::int64_t> starts;   ///< in elements of what was read
  std::vector<std::int64_t> offsets;  ///< from each start to its pieces
  std::int64_t piece = 0;             ///< elements

  /// Throws Error, which names the variable: out_of_range for an integer that is not on its axis,
  /// invalid_argument for a step of 0, more indices than axes, two ellipses or masks, or a mask that has
  /// another shape than its axes.
  Selection(const std::string& variable, const Shape& of, std::span<const Index> indices);
};

/// The sizes of a variable.
template <class V>
Shape shape_of(const V& variable) {
  const auto& sizes = variable.shape();
  return Shape(sizes.begin(), sizes.end());
}

/// As Python's `variable[indices...]`: `read_slice(v, Slice{.start = 2, .step = 2}, ellipsis, -1)`. Axes that
/// are not named are whole. Reads the rows that it needs and no others, consecutive ones by one pull, others
/// by one lookup, and nothing when the result is empty. A mask between or beside integers makes its axis
/// where it stands. Throws Error as Selection does, before anything is sent, and as the reads do.
template <class V>
Array<typename V::value_type> read_slice(const V& variable, std::span<const Index> indices) {
  using T = typename V::value_type;
  const Selection wanted(variable.name(), shape_of(variable), indices);
  Array<T> out(wanted.shape);
  if (out.size() == 0) return out;
  std::vector<Element<T>> rows(
      wanted.verbatim ? 0 : static_cast<std::size_t>(wanted.row_count) * variable.width());
  const std::span<Element<T>> into = wanted.verbatim ? out.values : rows;
  if (wanted.rows.empty()) {
    variable.pull(static_cast<std::uint64_t>(wanted.first_row), into);
  } else {
    variable.lookup(wanted.rows, into);
  }
  if (wanted.verbatim) return out;
  auto to = out.values.begin();
  for (const std::int64_t start : wanted.starts) {
    for (const std::int64_t offset : wanted.offsets) {
      to = std::copy_n(rows.begin() + start + offset, wanted.piece, to);
    }
  }
  return out;
}

template <class V, std::convertible_to<Index>... I>
Array<typename V::value_type> read_slice(const V& variable, const I&... indices) {
  return read_slice(variable, std::span<const Index>(std::vector<Index>{indices...}));
}

/// The shape of what rows `ids` make: ids.shape + variable.shape[1:]. Throws Error(invalid_argument) for a
/// scalar variable, which has no rows.
CAPSTAN_API Shape shape_of_rows(const std::string& variable, const Shape& of, const Shape& ids);

/// The rows `ids`, in that order, in the shape ids.shape + variable.shape[1:]. Throws Error: out_of_range for
/// a row that is not there (nothing has been sent then), invalid_argument for a scalar variable.
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

/// What gather_nd reads.
struct CAPSTAN_API GatherPlan {
  Shape shape;                       ///< of the result
  std::vector<std::int64_t> rows;    ///< each once, ascending
  std::vector<std::int64_t> starts;  ///< of the pieces, in elements of `rows`
  std::int64_t piece = 0;            ///< elements
  GatherPlan(const std::string& variable, const Shape& of, const Array<std::int64_t>& positions);
};

/// As tf.gather_nd: the last axis of `positions`, of size k, holds places on the first k axes; the result has
/// the shape positions.shape[:-1] + variable.shape[k:]. A row that is named twice is read once. Throws Error:
/// out_of_range for a place below 0 or past its axis, invalid_argument for k of more than the variable's
/// axes, before anything is sent.
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

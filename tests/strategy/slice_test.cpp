// slice_test.cpp -- index arithmetic, compared with direct definitions, on tables of any rank.
#include "capstan/detail/slice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

#include "support/counted_table.hpp"
#include "support/expect_error.hpp"

namespace capstan {
namespace {

using Integers = LocalTable<std::int64_t>;
using Longs = std::vector<std::int64_t>;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

static_assert(!std::is_constructible_v<Index, Array<std::int64_t>>,
              "arrays of positions are for sparse_read");
static_assert(!std::is_constructible_v<Index, bool>);
static_assert(!std::is_constructible_v<Index, double>);

/// Returns the positions of an axis that a slice selects, by testing each of them.
Longs positions_of(const Slice& slice, std::int64_t size) {
  Longs out;
  const auto from_end = [size](std::int64_t at) { return at < 0 ? at + size : at; };
  if (slice.step > 0) {
    const std::int64_t first = std::max<std::int64_t>(slice.start ? from_end(*slice.start) : 0, 0);
    for (std::int64_t location = first; location < size; ++location) {
      if (slice.stop && location >= from_end(*slice.stop)) continue;
      if ((location - first) % slice.step == 0) out.push_back(location);
    }
  } else {
    const std::int64_t first = std::min(slice.start ? from_end(*slice.start) : size - 1, size - 1);
    for (std::int64_t location = first; location >= 0; --location) {
      if (slice.stop && location <= from_end(*slice.stop)) continue;
      if (slice.step != kLeast && (first - location) % -slice.step == 0) out.push_back(location);
      if (slice.step == kLeast && first == location) out.push_back(location);
    }
  }
  return out;
}

Longs positions_of(const AxisRange& range) {
  Longs out;
  for (std::int64_t i = 0; i < range.count; ++i) out.push_back(range[i]);
  return out;
}

TEST(AxisRange, MatchesPythonForAllSlicesOfSmallAxes) {
  std::vector<std::optional<std::int64_t>> bounds{std::nullopt, kLeast, kLeast + 1, kMost, kMost - 1};
  for (std::int64_t bound = -9; bound <= 9; ++bound) bounds.emplace_back(bound);
  int slices = 0;
  for (std::int64_t size = 0; size <= 7; ++size) {
    for (const auto& start : bounds) {
      for (const auto& stop : bounds) {
        for (const std::int64_t step : {1, 2, 3, 5, 7, 8, -1, -2, -3, -6, -7, -9}) {
          const Slice slice{start, stop, step};
          ASSERT_EQ(positions_of(AxisRange::resolve(slice, size)), positions_of(slice, size))
              << size << ": " << start.value_or(99) << ":" << stop.value_or(99) << ":" << step;
          ++slices;
        }
      }
    }
  }
  EXPECT_EQ(slices, 8 * 24 * 24 * 12);
}

TEST(AxisRange, MatchesExamples) {
  EXPECT_EQ(AxisRange::resolve({}, 8), (AxisRange{0, 1, 8}));
  EXPECT_EQ(AxisRange::resolve({.stop = -1}, 8), (AxisRange{0, 1, 7}));
  EXPECT_EQ(AxisRange::resolve({.start = -3}, 8), (AxisRange{5, 1, 3}));
  EXPECT_EQ(AxisRange::resolve({.step = -1}, 8), (AxisRange{7, -1, 8}));
  EXPECT_EQ(AxisRange::resolve({.start = 6, .stop = 0, .step = -4}, 8), (AxisRange{6, -4, 2}));
  EXPECT_EQ(AxisRange::resolve({.start = 3, .stop = 3}, 8), (AxisRange{0, 1, 0}));
  EXPECT_EQ(AxisRange::resolve({.start = 100}, 8), (AxisRange{0, 1, 0}));
}

TEST(AxisRange, AcceptsExtremeBoundsWithoutOverflow) {
  for (const std::int64_t step : {kMost, kLeast, kLeast + 1}) {
    EXPECT_EQ(AxisRange::resolve({.step = step}, 5), (AxisRange{step > 0 ? 0 : 4, 1, 1}));
  }
  EXPECT_EQ(AxisRange::resolve({.step = 1}, kMost), (AxisRange{0, 1, kMost}));
  EXPECT_EQ(AxisRange::resolve({.step = -1}, kMost), (AxisRange{kMost - 1, -1, kMost}));
  EXPECT_EQ(AxisRange::resolve({.step = kMost - 1}, kMost), (AxisRange{0, kMost - 1, 2}));
  EXPECT_EQ(AxisRange::resolve({.start = kLeast, .stop = kMost, .step = 2}, 5), (AxisRange{0, 2, 3}));
  EXPECT_THROW((void)AxisRange::resolve({.step = 0}, 5), Error);
}

/// Evaluates indices as numpy does, element by element: each index becomes a list of tuples of positions,
/// one position per axis of the index.
Array<std::int64_t> expected(const Integers& table, const std::vector<Index>& indices) {
  const Shape& of = table.shape();
  std::size_t indexed = 0;
  bool has_ellipsis = false;
  for (const Index& index : indices) {
    if (std::holds_alternative<Array<bool>>(index.value()))
      indexed += std::get<Array<bool>>(index.value()).rank();
    if (std::holds_alternative<std::int64_t>(index.value())) ++indexed;
    if (std::holds_alternative<Slice>(index.value())) ++indexed;
    if (std::holds_alternative<Ellipsis>(index.value())) has_ellipsis = true;
  }
  std::vector<Index> full = indices;
  if (!has_ellipsis) full.push_back(ellipsis);
  std::vector<Longs> flat{{}};  // tuples of positions, in the order of the result
  Shape shape;
  std::size_t axis = 0;
  const auto extend = [&](const std::vector<Longs>& by) {
    std::vector<Longs> longer;
    for (const Longs& tuple : flat) {
      for (const Longs& more : by) {
        longer.push_back(tuple);
        longer.back().insert(longer.back().end(), more.begin(), more.end());
      }
    }
    flat = longer;
  };
  const auto along = [&](const Slice& slice) {
    std::vector<Longs> by;
    for (const std::int64_t location : positions_of(slice, of[axis])) by.push_back({location});
    extend(by);
    shape.push_back(static_cast<std::int64_t>(by.size()));
    ++axis;
  };
  for (const Index& index : full) {
    if (const auto* position = std::get_if<std::int64_t>(&index.value())) {
      extend({{*position < 0 ? *position + of[axis] : *position}});
      ++axis;
    } else if (const auto* slice = std::get_if<Slice>(&index.value())) {
      along(*slice);
    } else if (std::holds_alternative<NewAxis>(index.value())) {
      shape.push_back(1);
    } else if (const auto* mask = std::get_if<Array<bool>>(&index.value())) {
      std::vector<Longs> by;
      for (std::size_t location = 0; location < mask->size(); ++location) {
        if (mask->values[location] == 0) continue;
        Longs tuple(mask->rank());
        auto rest = static_cast<std::int64_t>(location);
        for (std::size_t i = mask->rank(); i-- > 0; rest /= mask->shape[i]) tuple[i] = rest % mask->shape[i];
        by.push_back(tuple);
      }
      extend(by);
      shape.push_back(static_cast<std::int64_t>(by.size()));
      axis += mask->rank();
    } else {
      for (std::size_t left = of.size() - indexed; left > 0; --left) along({});
    }
  }
  Array<std::int64_t> out(shape);
  EXPECT_EQ(out.size(), flat.size());
  for (std::size_t i = 0; i < flat.size(); ++i) {
    std::int64_t at = 0;
    for (std::size_t a = 0; a < of.size(); ++a) at = at * of[a] + flat[i][a];
    out.values[i] = table.all().values[static_cast<std::size_t>(at)];
  }
  return out;
}

class RandomIndex {
 public:
  std::vector<Index> operator()(const Shape& of) {
    std::vector<Index> out;
    bool ellipsis_left = true;
    bool mask_left = true;
    for (std::size_t axis = 0; axis < of.size();) {
      const std::int64_t size = of[axis];
      switch (below(9)) {
        case 0:
        case 1:
          if (size == 0) continue;
          out.emplace_back(below(2 * size) - size);
          ++axis;
          break;
        case 2:
        case 3:
        case 4:
          out.emplace_back(slice(size));
          ++axis;
          break;
        case 5:
          out.emplace_back(newaxis);
          break;
        case 6:
          if (!std::exchange(ellipsis_left, false)) continue;
          out.emplace_back(ellipsis);
          axis += static_cast<std::size_t>(below(static_cast<std::int64_t>(of.size() - axis) + 1));
          // The indices after an ellipsis apply to the last axes, whose sizes may differ: only slices fit.
          for (; axis < of.size(); ++axis) out.emplace_back(slice(3));
          break;
        case 7: {
          if (!std::exchange(mask_left, false)) continue;
          const auto rank = static_cast<std::size_t>(1 + below(static_cast<std::int64_t>(of.size() - axis)));
          Array<bool> mask(Shape(of.begin() + static_cast<std::ptrdiff_t>(axis),
                                 of.begin() + static_cast<std::ptrdiff_t>(axis + rank)));
          for (auto& bit : mask.values) bit = below(3) == 0 ? 1 : 0;
          out.emplace_back(mask);
          axis += rank;
          break;
        }
        default:
          return out;  // the other axes are taken completely
      }
    }
    return out;
  }

 private:
  std::int64_t below(std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_);
  }
  Slice slice(std::int64_t size) {
    Slice out;
    if (below(2) == 0) out.start = below(2 * size + 3) - size - 1;
    if (below(2) == 0) out.stop = below(2 * size + 3) - size - 1;
    const std::int64_t steps[] = {1, 1, 2, 3, -1, -2};
    out.step = steps[below(6)];
    return out;
  }
  std::mt19937_64 random_{11};
};

TEST(ReadSlice, MatchesNumpyForRandomIndicesAndShapes) {
  RandomIndex random;
  int read = 0;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{8, 2}, Shape{5, 3, 4}, Shape{3, 1, 2, 5},
                             Shape{4, 0, 3}, Shape{0, 3}}) {
    Counted<Integers> table{Integers(shape)};
    for (int i = 0; i < 2000; ++i) {
      table.forget();
      const std::vector<Index> indices = random(shape);
      const Array<std::int64_t> wanted = expected(table.table(), indices);
      const Array<std::int64_t> got = read_slice(table, indices);
      ASSERT_EQ(got.shape, wanted.shape) << to_string(shape) << " " << i;
      ASSERT_EQ(got.values, wanted.values) << to_string(shape) << " " << i;
      // One call reads exactly the rows that contribute to the result, each once.
      const auto width = static_cast<std::int64_t>(table.width());
      std::set<std::int64_t> needed;
      for (const std::int64_t element : wanted.values) needed.insert((element - 1) / width);
      Longs rows = table.rows_read();
      std::sort(rows.begin(), rows.end());
      ASSERT_EQ(rows, Longs(needed.begin(), needed.end()));
      ASSERT_EQ(table.lookups() + table.pulls(), wanted.values.empty() ? 0 : 1);
      if (!rows.empty() && rows.back() - rows.front() + 1 == static_cast<std::int64_t>(rows.size())) {
        ASSERT_EQ(table.pulls(), 1);
      }
      if (!wanted.values.empty()) ++read;
    }
  }
  EXPECT_GT(read, 5000);
}

TEST(ReadSlice, MatchesExamples) {
  const Integers matrix(Shape{3, 2});
  EXPECT_EQ(read_slice(matrix), matrix.all());
  EXPECT_EQ(read_slice(matrix, 1), Array<std::int64_t>::vector({3, 4}));
  EXPECT_EQ(read_slice(matrix, -1, 0), Array<std::int64_t>::scalar(5));
  EXPECT_EQ(read_slice(matrix, ellipsis, 1), Array<std::int64_t>::vector({2, 4, 6}));
  EXPECT_EQ(read_slice(matrix, newaxis, Slice{.step = -2}, Slice{.start = 1}),
            Array<std::int64_t>({1, 2, 1}, {6, 2}));
  const Array<bool> mask({3, 2}, {1, 0, 0, 1, 1, 0});
  EXPECT_EQ(read_slice(matrix, mask), Array<std::int64_t>::vector({1, 4, 5}));
  EXPECT_EQ(read_slice(matrix, Array<bool>({3}, {0, 0, 1})), Array<std::int64_t>({1, 2}, {5, 6}));
  EXPECT_EQ(read_slice(Integers(Shape{}), newaxis), Array<std::int64_t>::vector({1}));
  EXPECT_EQ(read_slice(LocalTable<bool>(Array<bool>({3}, {1, 0, 1})), Slice{.start = 1}),
            Array<bool>({2}, {0, 1}));
}

TEST(ReadSlice, RejectsInvalidIndicesBeforeReading) {
  const Counted<Integers> table{Integers(Shape{8, 2})};
  const auto expect = [&](Code code, const std::string& text, const std::vector<Index>& indices) {
    expect_error(code, "variable \"local\": " + text, [&] { (void)read_slice(table, indices); });
    EXPECT_EQ(table.lookups() + table.pulls(), 0);
  };
  expect(Code::out_of_range, "index 8 is out of bounds for axis 0 of size 8: expected -8 to 7", {8});
  expect(Code::out_of_range, "index -9 is out of bounds for axis 0 of size 8: expected -8 to 7", {-9});
  expect(Code::out_of_range, "index 2 is out of bounds for axis 1 of size 2: expected -2 to 1",
         {ellipsis, 2});
  expect(Code::out_of_range,
         "index 9223372036854775807 is out of bounds for axis 0 of size 8: expected -8 to 7",
         {~std::uint64_t{0}});
  expect(Code::invalid_argument, "the slice of axis 1 has step 0", {0, Slice{.step = 0}});
  expect(Code::invalid_argument, "3 indices are given for the 2 axes of shape (8, 2)", {0, 0, 0});
  expect(Code::invalid_argument, "an index has one ellipsis at most", {ellipsis, ellipsis});
  expect(Code::invalid_argument, "a mask of shape (7) is given for axes of shape (8)",
         {Array<bool>(Shape{7})});
  expect(Code::invalid_argument, "a mask of shape (8, 3) is given for axes of shape (8, 2)",
         {Array<bool>(Shape{8, 3})});
  expect(Code::invalid_argument, "a mask cannot be a scalar", {Array<bool>()});
  expect(Code::invalid_argument, "an index has one mask at most",
         {Array<bool>(Shape{8}), Array<bool>(Shape{2})});
  expect_error(Code::out_of_range, "variable \"local\": index 0 is out of bounds for axis 0, which is empty",
               [] {
                 (void)read_slice(Integers(Shape{0, 2}), 0);
               });
  expect_error(Code::invalid_argument, "variable \"local\": 1 indices are given for the 0 axes of shape ()",
               [] { (void)read_slice(Integers(Shape{}), 0); });
}

TEST(SparseRead, ReturnsRowsInTheOrderOfIds) {
  const Integers table(Shape{4, 2});
  EXPECT_EQ(sparse_read(table, Array<std::int64_t>({2, 2}, {3, 0, 3, 1})),
            Array<std::int64_t>({2, 2, 2}, {7, 8, 1, 2, 7, 8, 3, 4}));
  EXPECT_EQ(sparse_read(table, Array<std::int64_t>::scalar(2)), Array<std::int64_t>::vector({5, 6}));
  EXPECT_EQ(sparse_read(table, Longs{}), Array<std::int64_t>(Shape{0, 2}));
  expect_error(Code::invalid_argument, "variable \"local\" is a scalar, which has no rows",
               [] { (void)sparse_read(Integers(Shape{}), Longs{0}); });
}

TEST(GatherNd, TakesRowsBlocksAndElements) {
  Counted<Integers> cube{Integers(Shape{4, 2, 3})};
  using Ids = Array<std::int64_t>;
  EXPECT_EQ(gather_nd(cube, Ids({3, 3}, {3, 1, 2, 0, 0, 0, 3, 1, 0})), Ids::vector({24, 1, 22}));
  EXPECT_EQ(cube.rows_read(), (Longs{0, 3}));  // each once
  EXPECT_EQ(gather_nd(cube, Ids({2, 2}, {1, 0, 0, 1})), Ids({2, 3}, {7, 8, 9, 4, 5, 6}));
  EXPECT_EQ(gather_nd(cube, Ids({1, 1}, {2})), Ids({1, 2, 3}, {13, 14, 15, 16, 17, 18}));
  EXPECT_EQ(gather_nd(cube, Ids({2, 1, 3}, {0, 0, 1, 0, 1, 1})), Ids({2, 1}, {2, 5}));
  const Array<std::int64_t> twice = gather_nd(cube, Ids(Shape{2, 0}));
  EXPECT_EQ(twice.shape, (Shape{2, 4, 2, 3}));
  EXPECT_EQ(Longs(twice.values.begin() + 24, twice.values.end()), cube.table().all().values);
  EXPECT_EQ(gather_nd(Integers(Shape{}), Ids(Shape{2, 0})), Ids::vector({1, 1}));
  cube.forget();
  EXPECT_EQ(gather_nd(cube, Ids(Shape{0, 2})), Ids(Shape{0, 3}));
  const auto expect = [&](Code code, const std::string& text, const Ids& positions) {
    expect_error(code, "gather_nd of variable \"local\": " + text, [&] { (void)gather_nd(cube, positions); });
  };
  expect(Code::out_of_range, "position 1 is 2 on axis 1, which has size 2", Ids({2, 2}, {0, 0, 0, 2}));
  expect(Code::out_of_range, "position 0 is -1 on axis 0, which has size 4", Ids({1, 1}, {-1}));
  expect(Code::invalid_argument, "positions have 4 numbers each, the variable has 3 axes", Ids(Shape{1, 4}));
  expect(Code::invalid_argument, "positions are a scalar; expected one axis or more", Ids());
  EXPECT_EQ(cube.lookups(), 0);
}

}  // namespace
}  // namespace capstan

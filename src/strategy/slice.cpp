// slice.cpp -- the arithmetic of indexing, without access to a variable.
#include "capstan/detail/slice.hpp"

#include <fmt/format.h>

#include <functional>
#include <numeric>

#include "capstan/error.hpp"

namespace capstan {
namespace {

std::int64_t product(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

/// The positions that one index selects. A mask of several axes counts as an index of one axis, of `size`
/// positions.
struct Picked {
  std::int64_t size = 1;
  AxisRange range = {.start = 0, .step = 1, .count = 1};
  std::optional<std::vector<std::int64_t>> locations = {};  // positions that a mask selects, ascending

  std::int64_t count() const {
    return locations ? static_cast<std::int64_t>(locations->size()) : range.count;
  }
  std::int64_t operator[](std::int64_t i) const {
    return locations ? (*locations)[static_cast<std::size_t>(i)] : range[i];
  }
  bool all() const { return !locations && range == AxisRange{0, 1, size}; }
};

/// Resolves indices in turn, and collects the selected positions and the shape of the result.
class Resolver {
 public:
  Resolver(const std::string& variable, const Shape& source, std::span<const Index> indices)
      : variable_(variable), source_(source) {
    std::size_t named = 0;
    for (const Index& index : indices)
      named += std::visit([this](const auto& i) { return this->axes(i); }, index.value());
    if (named > source.size()) {
      refuse(Code::invalid_argument, fmt::format("{} indices are given for the {} axes of shape {}", named,
                                                 source.size(), to_string(source)));
    }
    left_ = source.size() - named;
    for (const Index& index : indices) std::visit([this](const auto& i) { add(i); }, index.value());
    if (!ellipsis_) add(ellipsis);
  }

  const std::vector<Picked>& picked() const { return picked_; }
  const Shape& shape() const { return shape_; }

 private:
  static std::size_t axes(std::int64_t) { return 1; }
  static std::size_t axes(const Slice&) { return 1; }
  static std::size_t axes(const Array<bool>& mask) { return mask.rank(); }
  std::size_t axes(const Ellipsis&) {
    if (ellipsis_) refuse(Code::invalid_argument, "an index has one ellipsis at most");
    ellipsis_ = true;
    return 0;
  }
  static std::size_t axes(const NewAxis&) { return 0; }

  void add(std::int64_t position) {
    const std::int64_t size = source_[axis_];
    if (position < -size || position >= size) {
      refuse(Code::out_of_range,
             size == 0 ? fmt::format("index {} is out of bounds for axis {}, which is empty", position, axis_)
                       : fmt::format("index {} is out of bounds for axis {} of size {}: expected {} to {}",
                                     position, axis_, size, -size, size - 1));
    }
    picked_.push_back({size, {position < 0 ? position + size : position, 1, 1}});
    ++axis_;
  }
  void add(const Slice& slice) {
    const std::int64_t size = source_[axis_];
    if (slice.step == 0) {
      refuse(Code::invalid_argument, fmt::format("the slice of axis {} has step 0", axis_));
    }
    picked_.push_back({size, AxisRange::resolve(slice, size)});
    shape_.push_back(picked_.back().range.count);
    ++axis_;
  }
  void add(const Array<bool>& mask) {
    const auto first = source_.begin() + static_cast<std::ptrdiff_t>(axis_);
    const Shape covered(first, first + static_cast<std::ptrdiff_t>(mask.rank()));
    if (mask.rank() == 0) refuse(Code::invalid_argument, "a mask cannot be a scalar");
    if (masked_) refuse(Code::invalid_argument, "an index has one mask at most");
    if (mask.shape != covered) {
      refuse(Code::invalid_argument, fmt::format("a mask of shape {} is given for axes of shape {}",
                                                 to_string(mask.shape), to_string(covered)));
    }
    masked_ = true;
    Picked picked{.size = product(covered), .range = {}, .locations = std::vector<std::int64_t>()};
    for (std::size_t location = 0; location < mask.size(); ++location) {
      if (mask.values[location] != 0) picked.locations->push_back(static_cast<std::int64_t>(location));
    }
    shape_.push_back(picked.count());
    picked_.push_back(std::move(picked));
    axis_ += mask.rank();
  }
  void add(const Ellipsis&) {
    for (const std::size_t end = axis_ + left_; axis_ < end; ++axis_) {
      picked_.push_back({source_[axis_], {0, 1, source_[axis_]}});
      shape_.push_back(source_[axis_]);
    }
  }
  void add(const NewAxis&) { shape_.push_back(1); }

  [[noreturn]] void refuse(Code code, const std::string& reason) const {
    throw Error(code, fmt::format("variable \"{}\": {}", variable_, reason));
  }

  const std::string& variable_;
  const Shape& source_;   // shape of the variable
  std::size_t left_ = 0;  // axes that an ellipsis stands for
  bool ellipsis_ = false;
  bool masked_ = false;
  std::size_t axis_ = 0;
  std::vector<Picked> picked_;
  Shape shape_;
};

/// Stores the distinct rows that a mask of axis 0, and perhaps further axes, selects, and the start of each
/// selected position in these rows. A row has `inner` positions of the mask, and `width` elements.
void select_masked_rows(const Picked& first, std::int64_t inner, std::int64_t width, Selection& out) {
  std::vector<std::int64_t> rows;
  for (const std::int64_t location : *first.locations) {
    const std::int64_t row = location / inner;
    if (rows.empty() || rows.back() != row) rows.push_back(row);
    const auto at = static_cast<std::int64_t>(rows.size()) - 1;
    out.starts.push_back(at * width + location % inner * (width / inner));
  }
  out.row_count = static_cast<std::int64_t>(rows.size());
  out.first_row = rows.front();
  if (rows.back() - rows.front() + 1 != out.row_count) out.rows = std::move(rows);
}

void select_rows(const AxisRange& range, Selection& out) {
  out.row_count = range.count;
  out.first_row = std::min(range[0], range[range.count - 1]);
  if (range.count == 1 || range.step == 1 || range.step == -1) return;
  out.rows.resize(static_cast<std::size_t>(range.count));
  for (std::int64_t i = 0; i < range.count; ++i) out.rows[static_cast<std::size_t>(i)] = range[i];
}

}  // namespace

AxisRange AxisRange::resolve(const Slice& slice, std::int64_t size) {
  if (slice.step == 0) throw Error(Code::invalid_argument, "a slice has step 0");
  // -2^63 cannot be negated; on an axis of less than 2^63 positions a step of 1 - 2^63 is equivalent.
  const std::int64_t step = std::max(slice.step, -std::numeric_limits<std::int64_t>::max());
  // Bounds of start and stop: a descending slice stops before the first position, at -1.
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? size : size - 1;
  const auto bound = [&](std::int64_t at) { return std::clamp(at < 0 ? at + size : at, low, high); };
  const std::int64_t start = slice.start ? bound(*slice.start) : (step > 0 ? low : high);
  const std::int64_t stop = slice.stop ? bound(*slice.stop) : (step > 0 ? high : low);
  AxisRange range{.start = start, .step = step, .count = 0};
  if (step > 0 && start < stop) range.count = (stop - start - 1) / step + 1;
  if (step < 0 && start > stop) range.count = (start - stop - 1) / -step + 1;
  // The step of at most one position is irrelevant; 1 keeps start + i * step in range.
  if (range.count <= 1) range.step = 1;
  if (range.count == 0) range.start = 0;
  return range;
}

Selection::Selection(const std::string& variable, const Shape& of, std::span<const Index> indices) {
  const Resolver resolver(variable, of, indices);
  shape = resolver.shape();
  if (elements_of(shape) == 0) return;
  const std::int64_t width = of.empty() ? 1 : product(std::span(of).subspan(1));
  const auto& picked = resolver.picked();
  const Picked first = picked.empty() ? Picked{} : picked.front();
  const std::span<const Picked> rest = std::span(picked).subspan(picked.empty() ? 0 : 1);

  // A piece is a range of one axis and all of the axes after it.
  std::int64_t stride = 1;
  piece = 1;
  offsets = {0};
  bool whole = true;
  for (auto group = rest.rbegin(); group != rest.rend(); ++group) {
    const bool contiguous = whole && !group->locations && (group->range.step == 1 || group->count() == 1);
    std::vector<std::int64_t> further;
    if (contiguous) {
      piece *= group->count();
      for (const std::int64_t offset : offsets) further.push_back(offset + (*group)[0] * stride);
    } else {
      further.reserve(offsets.size() * static_cast<std::size_t>(group->count()));
      for (std::int64_t i = 0; i < group->count(); ++i) {
        for (const std::int64_t offset : offsets) further.push_back(offset + (*group)[i] * stride);
      }
    }
    offsets = std::move(further);
    whole = whole && group->all();
    stride *= group->size;
  }

  if (first.locations) {
    verbatim = whole && first.size == of[0];
    select_masked_rows(first, of.empty() ? 1 : first.size / of[0], width, *this);
  } else {
    select_rows(first.range, *this);
    const bool backwards = rows.empty() && first.range.step == -1;
    verbatim = whole && !backwards;
    if (verbatim) return;
    for (std::int64_t i = 0; i < row_count; ++i)
      starts.push_back((backwards ? row_count - 1 - i : i) * width);
  }
}

Shape shape_of_rows(const std::string& variable, const Shape& of, const Shape& ids) {
  if (of.empty()) {
    throw Error(Code::invalid_argument,
                fmt::format("variable \"{}\" is a scalar, which has no rows", variable));
  }
  Shape shape = ids;
  shape.insert(shape.end(), of.begin() + 1, of.end());
  return shape;
}

GatherPlan::GatherPlan(const std::string& variable, const Shape& of, const Array<std::int64_t>& positions) {
  const auto refuse = [&](Code code, const std::string& reason) {
    throw Error(code, fmt::format("gather_nd of variable \"{}\": {}", variable, reason));
  };
  if (positions.rank() == 0)
    refuse(Code::invalid_argument, "positions are a scalar; expected one axis or more");
  const std::int64_t depth = positions.shape.back();
  if (depth > static_cast<std::int64_t>(of.size())) {
    refuse(Code::invalid_argument,
           fmt::format("positions have {} numbers each, the variable has {} axes", depth, of.size()));
  }
  shape.assign(positions.shape.begin(), positions.shape.end() - 1);
  shape.insert(shape.end(), of.begin() + depth, of.end());
  piece = product(std::span(of).subspan(static_cast<std::size_t>(depth)));
  const std::int64_t count = product(std::span(positions.shape).first(positions.rank() - 1));
  const std::int64_t width = of.empty() ? 1 : product(std::span(of).subspan(1));

  starts.resize(static_cast<std::size_t>(count));  // first in the variable, then, below, in the rows read
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t at = 0;
    for (std::int64_t axis = 0; axis < depth; ++axis) {
      const std::int64_t location = positions.values[static_cast<std::size_t>(i * depth + axis)];
      const std::int64_t size = of[static_cast<std::size_t>(axis)];
      if (location < 0 || location >= size) {
        refuse(Code::out_of_range,
               fmt::format("position {} is {} on axis {}, which has size {}", i, location, axis, size));
      }
      at = at * size + location;
    }
    starts[static_cast<std::size_t>(i)] = at * piece;
  }
  if (elements_of(shape) == 0) return;
  const std::int64_t all = depth == 0 && !of.empty() ? of[0] : 1;  // rows that one position selects
  for (const std::int64_t start : starts) {
    for (std::int64_t row = 0; row < all; ++row) rows.push_back(start / width + row);
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  for (std::int64_t& start : starts) {
    const auto row = std::lower_bound(rows.begin(), rows.end(), start / width) - rows.begin();
    start = row * width + start % width;
  }
}

}  // namespace capstan

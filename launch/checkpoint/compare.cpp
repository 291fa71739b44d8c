// compare.cpp -- reads both checkpoints in lockstep, piece by piece.
#include "launch/checkpoint/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/with_type.hpp"
#include "io/hdf5/layout.hpp"
#include "launch/checkpoint/output.hpp"

namespace capstan::launch::checkpoint {
namespace {

constexpr std::uint64_t kNoRow = std::numeric_limits<std::uint64_t>::max();

template <class T>
double difference(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    // The difference of two signed integers may overflow their type.
    using Unsigned = std::make_unsigned_t<T>;
    const auto large = static_cast<Unsigned>(std::max(a, b));
    const auto small = static_cast<Unsigned>(std::min(a, b));
    return static_cast<double>(static_cast<Unsigned>(large - small));
  } else {
    return std::abs(static_cast<double>(static_cast<Arithmetic<T>>(a)) -
                    static_cast<double>(static_cast<Arithmetic<T>>(b)));
  }
}

/// Compares consecutive pieces of two arrays.
class RowComparison {
 public:
  explicit RowComparison(std::uint64_t row_bytes) : row_bytes_(row_bytes) {}

  template <class T>
  void add(const char* a, const char* b, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
      if (std::memcmp(a + at, b + at, sizeof(T)) != 0)
        add_element<T>(a + at, b + at, (position_ + at) / row_bytes_);
    }
    position_ += bytes;
  }
  void skip(std::size_t bytes) { position_ += bytes; }
  const RowDifferences& found() const { return found_; }

 private:
  template <class T>
  void add_element(const char* a, const char* b, std::uint64_t row) {
    if (row != last_row_) ++found_.rows;
    last_row_ = row;
    T value_a, value_b;
    std::memcpy(&value_a, a, sizeof(T));
    std::memcpy(&value_b, b, sizeof(T));
    const double by = difference(value_a, value_b);
    if (std::isfinite(by)) {
      found_.largest = std::max(found_.largest, by);
    } else {
      ++found_.not_finite;
    }
  }

  std::uint64_t row_bytes_;
  std::uint64_t position_ = 0;
  std::uint64_t last_row_ = kNoRow;
  RowDifferences found_;
};

const io::ArrayInfo* find(const std::vector<io::ArrayInfo>& arrays, const io::ArrayInfo& like) {
  const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const io::ArrayInfo& other) {
    return other.variable == like.variable && other.component == like.component;
  });
  return found == arrays.end() ? nullptr : &*found;
}

/// Adds differences of dtype and shape to `to`. Returns false if there are none, so that rows can be
/// compared.
bool add_type_differences(std::vector<ArrayDifference>& to, const io::ArrayInfo& a, const io::ArrayInfo& b) {
  ArrayDifference difference{.variable = a.variable, .component = a.component};
  const std::size_t before = to.size();
  if (a.dtype != b.dtype) {
    difference.what = "dtype";
    difference.in_a = to_string(a.dtype);
    difference.in_b = to_string(b.dtype);
    to.push_back(difference);
  }
  if (a.shape != b.shape) {
    difference.what = "shape";
    difference.in_a = shape_text(a.shape);
    difference.in_b = shape_text(b.shape);
    to.push_back(difference);
  }
  return to.size() > before;
}

}  // namespace

RowDifferences compare_rows(io::ArrayStream& a, io::ArrayStream& b, const io::ProgressCallback& progress) {
  const io::ArrayInfo& array = a.array();
  RowComparison comparison(io::row_bytes(array.shape, array.dtype));
  const auto piece_bytes = static_cast<std::size_t>(std::min<std::uint64_t>(io::kPieceBytes, array.bytes()));
  std::vector<char> piece_a(piece_bytes), piece_b(piece_bytes);
  while (const std::size_t bytes = a.read(piece_a)) {
    b.read(piece_b);
    if (std::memcmp(piece_a.data(), piece_b.data(), bytes) == 0) {
      comparison.skip(bytes);
    } else {
      with_type(array.dtype, [&]<class T>(std::type_identity<T>) {
        comparison.add<T>(piece_a.data(), piece_b.data(), bytes);
      });
    }
    if (progress) progress(2 * bytes);
  }
  return comparison.found();
}

Comparison compare(const io::CheckpointReader& a, const io::CheckpointReader& b, bool with_slots,
                   const io::ProgressCallback& progress) {
  Comparison result;
  const auto arrays_a = io::arrays_of(a.variables(), with_slots);
  const auto arrays_b = io::arrays_of(b.variables(), with_slots);
  for (const io::ArrayInfo& array : arrays_a) {
    const auto add = [&](ArrayDifference difference) { result.differences.push_back(std::move(difference)); };
    const io::ArrayInfo* const other = find(arrays_b, array);
    if (other == nullptr) {
      add({.variable = array.variable, .component = array.component, .what = "only in A"});
      continue;
    }
    ++result.arrays;
    if (array.component == io::kValue) {
      const std::string& optimizer_a = a.variable(array.variable).optimizer;
      const std::string& optimizer_b = b.variable(array.variable).optimizer;
      if (optimizer_a != optimizer_b)
        add({array.variable, array.component, "optimizer", optimizer_a, optimizer_b});
    }
    if (add_type_differences(result.differences, array, *other)) continue;
    io::ArrayStream stream_a(a, array), stream_b(b, array);
    const RowDifferences rows = compare_rows(stream_a, stream_b, progress);
    if (rows.rows > 0) {
      add({.variable = array.variable,
           .component = array.component,
           .what = "values",
           .rows = rows,
           .of_rows = array.shape[0]});
    }
  }
  for (const io::ArrayInfo& array : arrays_b) {
    if (find(arrays_a, array) != nullptr) continue;
    result.differences.push_back(
        {.variable = array.variable, .component = array.component, .what = "only in B"});
  }
  return result;
}

}  // namespace capstan::launch::checkpoint

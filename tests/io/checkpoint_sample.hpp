// checkpoint_sample.hpp -- arrays with known contents, saved as a checkpoint of any number of parts.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "capstan/error.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/part_writer.hpp"
#include "support/expect_error.hpp"

namespace capstan::io {

/// A complete variable or slot as raw bytes.
struct SampleArray {
  std::string variable;
  std::string component;
  DType dtype;
  std::vector<std::uint64_t> shape;
  std::vector<char> bytes;

  std::uint64_t row_bytes() const { return bytes.size() / shape[0]; }
};

/// The elements are nonzero, and differ from their neighbors and from those of other arrays.
template <class T>
SampleArray make_array(std::string variable, std::string component, std::vector<std::uint64_t> shape,
                       int seed) {
  std::uint64_t count = 1;
  for (const auto dimension : shape) count *= dimension;
  std::vector<T> values(count);
  for (std::uint64_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(seed * 100'000 + static_cast<int>(i) + 1);
  SampleArray array{std::move(variable), std::move(component), dtype_of<T>, std::move(shape), {}};
  array.bytes.resize(count * sizeof(T));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

/// Returns arrays of float, double and int64, of ranks 1 and 2, with slots, a name with slashes, row counts
/// that are prime or 1.
inline std::vector<SampleArray> sample_arrays(int seed = 1) {
  return {make_array<float>("entities/embedding", "value", {101, 7}, seed),
          make_array<float>("entities/embedding", "accumulator", {101, 7}, seed + 1),
          make_array<double>("weights", "value", {53}, seed + 2),
          make_array<double>("weights", "m", {53}, seed + 3),
          make_array<double>("weights", "v", {53}, seed + 4),
          make_array<std::int64_t>("counts", "value", {17, 3}, seed + 5),
          make_array<std::int64_t>("step", "value", {1}, seed + 6)};
}

/// Rows [first, first + rows) of part `index` of `count`: evenly divided, the first parts one row longer.
struct Cut {
  std::uint64_t first;
  std::uint64_t rows;
};
inline Cut cut(std::uint64_t total, int index, int count) {
  const auto n = static_cast<std::uint64_t>(count), i = static_cast<std::uint64_t>(index);
  const std::uint64_t each = total / n, extra = total % n;
  return {i * each + std::min(i, extra), each + (i < extra ? 1 : 0)};
}

inline std::vector<PartArray> part_arrays(const std::vector<SampleArray>& arrays, int index, int count) {
  std::vector<PartArray> parts;
  for (const SampleArray& array : arrays) {
    const auto [first, rows] = cut(array.shape[0], index, count);
    PartArray part{
        .variable = array.variable, .component = array.component, .dtype = array.dtype, .shape = array.shape};
    part.first_row = first;
    part.rows = rows;
    part.data = array.bytes.data() + first * array.row_bytes();
    if (array.component == "value") {
      part.optimizer = "Adagrad(learning_rate=0.1)";
      part.steps = 1000 + index;
      if (array.variable == "weights" && index > 0) part.learning_rate = 0.5 + index;
    }
    parts.push_back(part);
  }
  return parts;
}

inline std::vector<PartReport> write_parts(const std::filesystem::path& scratch,
                                           const std::vector<SampleArray>& arrays, int count) {
  std::vector<PartReport> reports;
  for (int i = 0; i < count; ++i) {
    reports.push_back(write_part(scratch / part_file_name(i, count), part_arrays(arrays, i, count)));
  }
  return reports;
}

inline std::filesystem::path save(CheckpointDirectory& directory, std::int64_t step,
                                  const std::vector<SampleArray>& arrays, int count,
                                  const PublishOptions& options = {}) {
  return directory.publish(step, write_parts(directory.begin(step), arrays, count), options);
}

/// Expects that every array equals the saved one.
inline void expect_holds(const CheckpointReader& reader, const std::vector<SampleArray>& arrays) {
  ASSERT_FALSE(arrays.empty());
  for (const SampleArray& array : arrays) {
    std::vector<char> out(array.bytes.size());
    reader.read_rows(array.variable, array.component, 0, array.shape[0], out.data());
    EXPECT_EQ(out, array.bytes) << array.variable << " " << array.component;
  }
}

inline std::string file_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace capstan::io

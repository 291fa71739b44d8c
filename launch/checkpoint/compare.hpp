// compare.hpp -- compares two checkpoints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/hdf5/array_stream.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/progress_callback.hpp"

namespace capstan::launch::checkpoint {

/// Differences of two arrays with equal dtype and shape. A row differs if its bytes differ.
struct RowDifferences {
  std::uint64_t rows = 0;
  double largest = 0;            // maximum of |a - b| over the finite differences
  std::uint64_t not_finite = 0;  // elements whose difference is NaN or infinite
};

struct ArrayDifference {
  std::string variable = {};
  std::string component = {};
  std::string what = {};  // "only in A", "only in B", "dtype", "shape", "optimizer", "values"
  std::string in_a = {};  // set for dtype, shape and optimizer
  std::string in_b = {};
  RowDifferences rows = {};   // set for values
  std::uint64_t of_rows = 0;  // rows of the array; set for values
};

struct Comparison {
  std::uint64_t arrays = 0;  // arrays in both checkpoints
  std::vector<ArrayDifference> differences = {};
};

/// Reads both streams to their ends; REQUIRES: equal dtype and shape.
RowDifferences compare_rows(io::ArrayStream& a, io::ArrayStream& b, const io::ProgressCallback& progress);

/// Compares all variables, with optimizer slots if `with_slots`. `progress` receives the bytes read.
Comparison compare(const io::CheckpointReader& a, const io::CheckpointReader& b, bool with_slots,
                   const io::ProgressCallback& progress);

}  // namespace capstan::launch::checkpoint

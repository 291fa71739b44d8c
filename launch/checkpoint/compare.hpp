// compare.hpp -- where two checkpoints differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/bytes_done.hpp"
#include "io/hdf5/array_stream.hpp"
#include "io/hdf5/checkpoint_reader.hpp"

namespace capstan::launch::checkpoint {

/// Of two arrays of one dtype and shape. A row differs when its bytes do.
struct RowDifferences {
  std::uint64_t rows = 0;
  double largest = 0;            // of |a - b| where it is finite
  std::uint64_t not_finite = 0;  // elements that differ by NaN or infinity
};

struct ArrayDifference {
  std::string variable = {};
  std::string which = {};
  std::string what = {};  // "only in A", "only in B", "dtype", "shape", "optimizer", "values"
  std::string in_a = {};  // of dtype, shape and optimizer
  std::string in_b = {};
  RowDifferences rows = {};  // of values
  std::uint64_t of_rows = 0;
};

struct Comparison {
  std::uint64_t arrays = 0;  // that both have
  std::vector<ArrayDifference> differences = {};
};

RowDifferences compare_rows(io::ArrayStream& a, io::ArrayStream& b, const io::BytesDone& done);

Comparison compare(const io::CheckpointReader& a, const io::CheckpointReader& b, bool with_slots,
                   const io::BytesDone& done);

}  // namespace capstan::launch::checkpoint

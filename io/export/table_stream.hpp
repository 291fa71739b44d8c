// table_stream.hpp -- one array of a dynamic table in a checkpoint: the rows that have a key, of all parts.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "io/hdf5/array_stream.hpp"

namespace capstan::io {

/// Verifies checksums as ArrayStream does. All arrays of a table have the same order of rows. One thread at a
/// time.
class TableStream final : public ArraySource {
 public:
  /// `array`: as exported_arrays() returns it. Keeps no reference to `from`.
  TableStream(const CheckpointReader& from, const ArrayInfo& array);

  const ArrayInfo& array() const noexcept override { return array_; }
  std::size_t read(std::span<char> out) override;

 private:
  struct Part {
    ArrayStream states;
    ArrayStream rows;
    std::uint64_t left;  // rows that were not read
  };
  /// Sets the buffer to the next rows with a key; returns false at the end.
  bool fill();

  ArrayInfo array_;
  std::vector<Part> parts_;  // by shard
  std::size_t part_ = 0;     // index of the current part
  std::vector<std::uint32_t> states_;
  std::vector<char> buffer_;
  std::size_t used_ = 0;  // bytes consumed of the buffer
};

}  // namespace capstan::io

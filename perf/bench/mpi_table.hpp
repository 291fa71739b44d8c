// mpi_table.hpp -- table of the MPI rivals: rows in windows of the ps ranks, partitioned like a Capstan
// variable.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>

#include "perf/bench/mpi_ranks.hpp"

namespace capstan::perf {

/// Construction and destruction are collective. During its lifetime, workers may access it by one-sided
/// operations. Holds one table at a time, of any shape with at most `floats` floats.
class MpiTable {
 public:
  MpiTable(const MpiRanks& ranks, std::uint64_t floats);
  ~MpiTable();
  MpiTable(const MpiTable&) = delete;
  MpiTable& operator=(const MpiTable&) = delete;

  void set_shape(std::uint64_t rows, std::uint64_t width);
  std::uint64_t rows() const { return rows_; }
  std::uint64_t width() const { return width_; }

  /// Number of the first row of this ps, and the values of its rows; empty on other ranks.
  std::uint64_t first_row() const;
  std::span<float> local_rows() const;
  /// Called by a ps after it wrote its rows, and before it reads them.
  void sync() const { MPI_Win_sync(window_); }

  /// Reads the complete table once, for the reason of perf::read_once. Called by a worker.
  void read_once() const;
  /// Copies row ids[i] to row i of `out` with one MPI_Get per row.
  void get_rows(std::span<const std::int64_t> ids, float* out) const;
  /// Does the same with one MPI_Get of an indexed datatype. REQUIRES: one ps.
  void get_indexed(std::span<const std::int64_t> ids, float* out) const;
  /// Adds row i of `values` to row ids[i] with one MPI_Accumulate per row. Complete when flush() returns.
  void accumulate_rows(std::span<const std::int64_t> ids, const float* values) const;
  void flush() const { MPI_Win_flush_all(window_); }

  bool one_ps() const { return ranks_.ps().size() == 1; }

 private:
  std::uint64_t rows_per_ps() const;

  const MpiRanks& ranks_;
  MPI_Win window_ = MPI_WIN_NULL;
  float* memory_ = nullptr;
  std::uint64_t rows_ = 0;
  std::uint64_t width_ = 0;
};

}  // namespace capstan::perf

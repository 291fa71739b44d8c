// mpi_table.hpp -- the rivals' table: rows in an MPI window of the ps ranks, cut as Capstan cuts a variable.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>

#include "perf/bench/mpi_ranks.hpp"

namespace capstan::perf {

/// Collective to make and to end. Open for one-sided access by the workers while it lives. Its memory serves
/// tables of any shape up to `floats`, one after the other.
class MpiTable {
 public:
  MpiTable(const MpiRanks& ranks, std::uint64_t floats);
  ~MpiTable();
  MpiTable(const MpiTable&) = delete;
  MpiTable& operator=(const MpiTable&) = delete;

  void set_shape(std::uint64_t rows, std::uint64_t width);
  std::uint64_t rows() const { return rows_; }
  std::uint64_t width() const { return width_; }

  /// This ps's rows: the number of its first, and their values. Empty elsewhere.
  std::uint64_t first_row() const;
  std::span<float> mine() const;
  /// A ps says that it has written its rows, or will read them.
  void sync() const { MPI_Win_sync(window_); }

  /// Reads all of it once, for the reason of perf::read_once. On a worker.
  void read_once() const;
  /// Row ids[i] into row i of `out`, one MPI_Get a row.
  void get_rows(std::span<const std::int64_t> ids, float* out) const;
  /// The same by one MPI_Get a ps with an indexed datatype. REQUIRES: one ps.
  void get_indexed(std::span<const std::int64_t> ids, float* out) const;
  /// Row ids[i] += row i of `values`, one MPI_Accumulate a row. Done when flush() returns.
  void accumulate_rows(std::span<const std::int64_t> ids, const float* values) const;
  void flush() const { MPI_Win_flush_all(window_); }

  bool one_ps() const { return ranks_.ps().size() == 1; }

 private:
  std::uint64_t rows_a_ps() const;

  const MpiRanks& ranks_;
  MPI_Win window_ = MPI_WIN_NULL;
  float* memory_ = nullptr;
  std::uint64_t rows_ = 0;
  std::uint64_t width_ = 0;
};

}  // namespace capstan::perf

// mpi_table.cpp -- one-sided MPI operations on rows.
#include "perf/bench/mpi_table.hpp"

#include <algorithm>
#include <vector>

namespace capstan::perf {

MpiTable::MpiTable(const MpiRanks& ranks, std::uint64_t floats) : ranks_(ranks) {
  const std::uint64_t each = floats / ranks.ps().size() + 65536;  // shards may differ by a row
  const std::uint64_t bytes = ranks.role() == Role::ps ? each * sizeof(float) : 0;
  ranks.barrier();
  MPI_Win_allocate(static_cast<MPI_Aint>(bytes), sizeof(float), MPI_INFO_NULL, MPI_COMM_WORLD, &memory_,
                   &window_);
  MPI_Win_lock_all(0, window_);
}

MpiTable::~MpiTable() {
  ranks_.barrier();
  MPI_Win_unlock_all(window_);
  MPI_Win_free(&window_);
}

void MpiTable::set_shape(std::uint64_t rows, std::uint64_t width) {
  rows_ = rows;
  width_ = width;
}

std::uint64_t MpiTable::rows_per_ps() const {
  const std::uint64_t ps = ranks_.ps().size();
  return (rows_ + ps - 1) / ps;
}

std::uint64_t MpiTable::first_row() const {
  const auto index = std::find(ranks_.ps().begin(), ranks_.ps().end(), ranks_.rank()) - ranks_.ps().begin();
  return std::min(rows_, static_cast<std::uint64_t>(index) * rows_per_ps());
}

std::span<float> MpiTable::local_rows() const {
  if (ranks_.role() != Role::ps) return {};
  const std::uint64_t rows = std::min(rows_per_ps(), rows_ - first_row());
  return {memory_, rows * width_};
}

void MpiTable::read_once() const {
  std::vector<float> block(1 << 20);
  for (std::size_t ps = 0; ps < ranks_.ps().size(); ++ps) {
    const std::uint64_t first = std::min(rows_, ps * rows_per_ps());
    const std::uint64_t floats = std::min(rows_per_ps(), rows_ - first) * width_;
    for (std::uint64_t at = 0; at < floats; at += block.size()) {
      const int size = static_cast<int>(std::min<std::uint64_t>(block.size(), floats - at));
      MPI_Get(block.data(), size, MPI_FLOAT, ranks_.ps()[ps], static_cast<MPI_Aint>(at), size, MPI_FLOAT,
              window_);
      flush();
    }
  }
}

void MpiTable::get_rows(std::span<const std::int64_t> ids, float* out) const {
  const std::uint64_t each = rows_per_ps();
  const int width = static_cast<int>(width_);
  for (const std::int64_t id : ids) {
    const auto row = static_cast<std::uint64_t>(id);
    MPI_Get(out, width, MPI_FLOAT, ranks_.ps()[row / each], static_cast<MPI_Aint>(row % each * width_), width,
            MPI_FLOAT, window_);
    out += width_;
  }
  flush();
}

void MpiTable::get_indexed(std::span<const std::int64_t> ids, float* out) const {
  static thread_local std::vector<int> displacements;
  displacements.resize(ids.size());
  std::transform(ids.begin(), ids.end(), displacements.begin(), [this](std::int64_t id) {
    return static_cast<int>(static_cast<std::uint64_t>(id) * width_);
  });
  const int count = static_cast<int>(ids.size());
  MPI_Datatype rows = MPI_DATATYPE_NULL;
  MPI_Type_create_indexed_block(count, static_cast<int>(width_), displacements.data(), MPI_FLOAT, &rows);
  MPI_Type_commit(&rows);
  MPI_Get(out, count * static_cast<int>(width_), MPI_FLOAT, ranks_.ps()[0], 0, 1, rows, window_);
  flush();
  MPI_Type_free(&rows);
}

void MpiTable::accumulate_rows(std::span<const std::int64_t> ids, const float* values) const {
  const std::uint64_t each = rows_per_ps();
  const int width = static_cast<int>(width_);
  for (const std::int64_t id : ids) {
    const auto row = static_cast<std::uint64_t>(id);
    MPI_Accumulate(values, width, MPI_FLOAT, ranks_.ps()[row / each],
                   static_cast<MPI_Aint>(row % each * width_), width, MPI_FLOAT, MPI_SUM, window_);
    values += width_;
  }
}

}  // namespace capstan::perf

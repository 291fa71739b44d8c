// copy.cpp -- streams the arrays of one checkpoint into another.
#include "launch/checkpoint/copy.hpp"

#include <memory>
#include <vector>

#include "io/hdf5/array_stream.hpp"
#include "io/hdf5/layout.hpp"

namespace capstan::launch::checkpoint {
namespace {

/// Returns the `listed` arrays, complete. Their rows are read from `reader` only when they are written.
std::vector<io::PartArray> arrays_from(const io::CheckpointReader& reader,
                                       const std::vector<io::ArrayInfo>& listed,
                                       const io::ProgressCallback& progress) {
  std::vector<io::PartArray> arrays;
  for (const io::ArrayInfo& info : listed) {
    io::PartArray array{
        .variable = info.variable, .component = info.component, .dtype = info.dtype, .shape = info.shape};
    const auto stream = std::make_shared<io::ArrayStream>(reader, info);
    const std::uint64_t row = io::row_bytes(info.shape, info.dtype);
    // Parts and rows are written in order, so a sequential stream suffices.
    array.read = [stream, row, progress](std::uint64_t, std::uint64_t count, std::byte* out) {
      stream->read({reinterpret_cast<char*>(out), static_cast<std::size_t>(count * row)});
      progress(count * row);
    };
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace

std::uint64_t bytes_to_copy(const io::CheckpointReader& from) {
  return io::bytes_of(io::arrays_of(from.variables(), /*with_slots=*/true));
}

void copy(const io::CheckpointReader& from, NewCheckpoint& to, int parts,
          const io::ProgressCallback& progress) {
  const auto listed = io::arrays_of(from.variables(), /*with_slots=*/true);
  // Sets the step counters that a restore with this number of ps would compute.
  to.write(arrays_from(from, listed, progress), parts, [&](io::PartArray& rows) {
    const io::VariableInfo& variable = from.variable(rows.variable);
    rows.optimizer = variable.optimizer;
    rows.steps = rows.rows == 0 ? variable.steps : variable.steps_of(rows.first_row, rows.rows);
    rows.learning_rate = variable.learning_rate_of(rows.first_row, rows.rows);
  });
}

void copy_parts(const io::CheckpointReader& from, NewCheckpoint& to, const io::ProgressCallback& progress) {
  const int parts = static_cast<int>(from.parts().size());
  for (int part = 0; part < parts; ++part) {
    std::vector<io::PartArray> arrays;
    for (const io::DatasetReport& dataset : from.parts()[static_cast<std::size_t>(part)].datasets) {
      if (dataset.component == io::kChangedRows) continue;
      io::PartArray array{.variable = dataset.variable,
                          .component = dataset.component,
                          .dtype = dataset.dtype,
                          .shape = dataset.shape,
                          .first_row = dataset.first_row,
                          .rows = dataset.rows};
      array.optimizer = dataset.optimizer;
      array.steps = dataset.steps;
      array.learning_rate = dataset.learning_rate;
      array.read = [&from, &dataset, &progress](std::uint64_t first, std::uint64_t count, std::byte* out) {
        from.read_rows(dataset.variable, dataset.component, dataset.first_row + first, count, out);
        progress(count * io::row_bytes(dataset.shape, dataset.dtype));
      };
      arrays.push_back(std::move(array));
    }
    to.write_part(part, parts, arrays);
  }
}

std::filesystem::path publish_as(const io::CheckpointReader& from, NewCheckpoint& to) {
  return to.publish({.user_state = from.user_state(),
                     .settings = from.settings(),
                     .positions = from.positions(),
                     .counters = from.counters()});
}

}  // namespace capstan::launch::checkpoint

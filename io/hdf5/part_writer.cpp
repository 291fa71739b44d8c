// part_writer.cpp -- HDF5 creates the file; one pass writes and checksums the rows.
#include "io/hdf5/part_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "base/file_size_signal.hpp"
#include "base/name.hpp"
#include "capstan/error.hpp"
#include "io/checksum.hpp"
#include "io/direct_writer.hpp"
#include "io/file.hpp"
#include "io/hdf5/hdf5_layout.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/verify.hpp"

namespace capstan::io {
namespace {

static_assert(std::endian::native == std::endian::little, "checksums cover little-endian bytes");

constexpr std::uint64_t kSlabBytes = std::uint64_t{1} << 20;

bool is_increment(std::span<const PartArray> arrays) {
  return std::any_of(arrays.begin(), arrays.end(), [](const PartArray& a) { return a.changed.has_value(); });
}

void check_arrays(std::span<const PartArray> arrays) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const PartArray& array : arrays) {
    check_name("variable", array.variable);
    check_component(array.component);
    const std::string name = fmt::format("{} of \"{}\"", array.component, array.variable);
    check_shape(name, array.shape, array.dtype);
    if (array.first_row > array.shape[0] || array.rows > array.shape[0] - array.first_row) {
      throw Error(Code::invalid_argument,
                  fmt::format("{} has rows {} to {}, expected at most {}", name, array.first_row,
                              array.first_row + array.rows, array.shape[0]));
    }
    if (array.stored() > array.rows)
      throw Error(Code::invalid_argument, fmt::format("{} has {} changed rows, expected at most {}", name,
                                                      array.stored(), array.rows));
    if (array.stored() > 0 && array.data == nullptr && !array.read)
      throw Error(Code::invalid_argument, name + " has no data");
    if (!seen.emplace(array.variable, array.component).second) {
      throw Error(Code::invalid_argument, name + " is given twice");
    }
  }
  std::set<std::string> names;
  for (const PartArray& array : arrays) names.insert(array.variable);
  check_no_collisions(std::vector<std::string>(names.begin(), names.end()), is_increment(arrays));
}

std::vector<std::uint64_t> with_rows(std::vector<std::uint64_t> shape, std::uint64_t rows) {
  shape[0] = rows;
  return shape;
}

/// Creates the file with its metadata and with space for the rows.
void create_part_file(const std::filesystem::path& file, std::span<const PartArray> arrays,
                      PartReport& report) {
  const std::int64_t version = is_increment(arrays) ? kIncrementVersion : kFormatVersion;
  std::vector<Hdf5Dataset> datasets;
  std::vector<Hdf5Attribute> attributes{{"/", "format", std::string(kFormatName)}, {"/", "version", version}};
  for (const PartArray& array : arrays) {
    const std::string path = dataset_path(array.variable, array.component);
    datasets.push_back({path, array.dtype, with_rows(array.shape, array.stored())});
    attributes.push_back({path, "shape", array.shape});
    attributes.push_back({path, "first_row", static_cast<std::int64_t>(array.first_row)});
    const bool is_value = array.component == kValue;
    if (is_value) {
      attributes.push_back({path, "optimizer", array.optimizer});
      attributes.push_back({path, "steps", array.steps});
      if (array.learning_rate) attributes.push_back({path, "learning_rate", *array.learning_rate});
    }
    report.datasets.push_back({.variable = array.variable,
                               .component = array.component,
                               .dtype = array.dtype,
                               .shape = array.shape,
                               .first_row = array.first_row,
                               .rows = array.rows,
                               .changed = array.changed,
                               .optimizer = is_value ? array.optimizer : std::string(),
                               .steps = is_value ? array.steps : 0,
                               .learning_rate = is_value ? array.learning_rate : std::nullopt});
  }
  const std::vector<std::uint64_t> offsets = lay_out_hdf5(file, datasets, attributes);
  for (std::size_t i = 0; i < offsets.size(); ++i) report.datasets[i].offset = offsets[i];
}

/// Writes a dataset's rows at its offset, without HDF5, whose lock would block other threads. Returns their
/// checksum.
std::string write_rows(DirectWriter& to, const DatasetReport& dataset, const PartArray& array) {
  Checksum sum;
  const std::uint64_t bytes_per_row = row_bytes(array.shape, array.dtype);
  if (bytes_per_row == 0) return sum.hex();
  const std::uint64_t rows_per_slab = std::max<std::uint64_t>(1, kSlabBytes / bytes_per_row);
  to.begin(dataset.offset, array.stored() * bytes_per_row);
  for (std::uint64_t row = 0; row < array.stored(); row += rows_per_slab) {
    const std::uint64_t rows = std::min(rows_per_slab, array.stored() - row);
    const std::size_t bytes = rows * bytes_per_row;
    std::byte* slab = to.staging_buffer(bytes);
    if (array.read) {
      array.read(row, rows, slab);
    } else {
      std::memcpy(slab, static_cast<const std::byte*>(array.data) + row * bytes_per_row, bytes);
    }
    sum.add(slab, bytes);
    to.add(bytes);
  }
  to.end();
  return sum.hex();
}

}  // namespace

PartReport write_part(const std::filesystem::path& file, std::span<const PartArray> arrays) {
  check_arrays(arrays);
  const FileSizeSignalBlock file_size_signal;
  std::vector<PartArray> stored;
  for (const PartArray& array : arrays) {
    if (array.rows > 0 || array.shape[0] == 0) stored.push_back(array);
  }
  PartReport report{.file = file.filename().string()};
  create_part_file(file, stored, report);
  DirectWriter writer(file);
  for (std::size_t i = 0; i < stored.size(); ++i)
    report.datasets[i].xxh3 = write_rows(writer, report.datasets[i], stored[i]);
  writer.sync();
  report.bytes = file_bytes(file);
  report.metadata_xxh3 = metadata_checksum(file, report);
  sync_path(file.has_parent_path() ? file.parent_path() : ".");
  return report;
}

}  // namespace capstan::io

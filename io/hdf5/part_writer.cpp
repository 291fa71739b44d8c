// part_writer.cpp -- one pass over the rows: written and checksummed slab by slab, while they are in the
// cache.
#include "io/hdf5/part_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "capstan/error.hpp"
#include "io/checksum.hpp"
#include "io/file.hpp"
#include "io/hdf5/h5.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/verify.hpp"

namespace capstan::io {
namespace {

static_assert(std::endian::native == std::endian::little, "the checksums are of little-endian bytes");

constexpr std::uint64_t kSlabBytes = std::uint64_t{1} << 20;

void check_arrays(std::span<const PartArray> arrays) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const PartArray& array : arrays) {
    check_variable_name(array.variable);
    check_which(array.which);
    const std::string name = fmt::format("{} of \"{}\"", array.which, array.variable);
    check_shape(name, array.shape, array.dtype);
    if (array.first_row > array.shape[0] || array.rows > array.shape[0] - array.first_row) {
      throw Error(Code::invalid_argument, fmt::format("{}: rows {} to {} of {}", name, array.first_row,
                                                      array.first_row + array.rows, array.shape[0]));
    }
    if (array.rows > 0 && array.data == nullptr) throw Error(Code::invalid_argument, name + " has no data");
    if (!seen.emplace(array.variable, array.which).second) {
      throw Error(Code::invalid_argument, name + " is given twice");
    }
  }
  std::set<std::string> names;
  for (const PartArray& array : arrays) names.insert(array.variable);
  check_names_apart(std::vector<std::string>(names.begin(), names.end()));
}

std::vector<std::uint64_t> with_rows(std::vector<std::uint64_t> shape, std::uint64_t rows) {
  shape[0] = rows;
  return shape;
}

h5::Properties contiguous_layout(const std::filesystem::path& file) {
  h5::Properties create = h5::create_properties(H5P_DATASET_CREATE);
  h5::check(H5Pset_layout(create.get(), H5D_CONTIGUOUS), "H5Pset_layout", file);
  h5::check(H5Pset_alloc_time(create.get(), H5D_ALLOC_TIME_EARLY), "H5Pset_alloc_time", file);
  h5::check(H5Pset_fill_time(create.get(), H5D_FILL_TIME_NEVER), "H5Pset_fill_time", file);
  h5::check(H5Pset_obj_track_times(create.get(), 0), "H5Pset_obj_track_times", file);
  return create;
}

/// Returns the checksum of what it wrote.
std::string write_rows(const h5::Dataset& dataset, const std::filesystem::path& file,
                       const PartArray& array) {
  const auto shape = with_rows(array.shape, array.rows);
  const h5::Space in_file = h5::create_space(shape);
  const std::uint64_t bytes_a_row = row_bytes(array.shape, array.dtype);
  const auto* from = static_cast<const char*>(array.data);
  Checksum sum;
  if (bytes_a_row == 0) return sum.hex();
  const std::uint64_t rows_a_slab = std::max<std::uint64_t>(1, kSlabBytes / bytes_a_row);
  for (std::uint64_t row = 0; row < array.rows; row += rows_a_slab) {
    const std::uint64_t rows = std::min(rows_a_slab, array.rows - row);
    h5::select_rows(in_file, shape, row, rows);
    const h5::Space in_memory = h5::create_space(with_rows(array.shape, rows));
    h5::check(H5Dwrite(dataset.get(), h5::memory_type(array.dtype), in_memory.get(), in_file.get(),
                       H5P_DEFAULT, from),
              "H5Dwrite", file);
    sum.add(from, rows * bytes_a_row);
    from += rows * bytes_a_row;
  }
  return sum.hex();
}

DatasetReport write_array(const h5::File& to, const std::filesystem::path& file, const PartArray& array) {
  const std::string path = dataset_path(array.variable, array.which);
  const h5::Space space = h5::create_space(with_rows(array.shape, array.rows));
  const h5::Properties groups = h5::intermediate_groups();
  const h5::Properties create = contiguous_layout(file);
  const h5::Dataset dataset(h5::check(H5Dcreate2(to.get(), path.c_str(), h5::file_type(array.dtype),
                                                 space.get(), groups.get(), create.get(), H5P_DEFAULT),
                                      "H5Dcreate2", file));
  h5::write_attribute(dataset.get(), "shape", array.shape);
  h5::write_attribute(dataset.get(), "first_row", static_cast<std::int64_t>(array.first_row));
  const bool is_value = array.which == kValue;
  if (is_value) {
    h5::write_attribute(dataset.get(), "optimizer", array.optimizer);
    h5::write_attribute(dataset.get(), "steps", array.steps);
  }
  DatasetReport report{.variable = array.variable,
                       .which = array.which,
                       .dtype = array.dtype,
                       .shape = array.shape,
                       .first_row = array.first_row,
                       .rows = array.rows,
                       .optimizer = is_value ? array.optimizer : std::string(),
                       .steps = is_value ? array.steps : 0};
  report.xxh3 = write_rows(dataset, file, array);
  if (data_bytes(report) == 0) return report;  // has no place in the file
  const haddr_t offset = H5Dget_offset(dataset.get());
  if (offset == HADDR_UNDEF) h5::check(-1, "H5Dget_offset", file);
  report.offset = offset;
  return report;
}

}  // namespace

PartReport write_part(const std::filesystem::path& file, std::span<const PartArray> arrays) {
  check_arrays(arrays);
  PartReport report{.file = file.filename().string()};
  {
    const h5::Session session;
    h5::File to = h5::create_file(file);
    h5::write_attribute(to.get(), "format", std::string(kFormatName));
    h5::write_attribute(to.get(), "version", std::int64_t{kFormatVersion});
    for (const PartArray& array : arrays) {
      if (array.rows > 0 || array.shape[0] == 0) report.datasets.push_back(write_array(to, file, array));
    }
    h5::check(H5Fflush(to.get(), H5F_SCOPE_GLOBAL), "H5Fflush", file);
    h5::close_file(std::move(to), file);
  }
  report.bytes = file_bytes(file);
  report.metadata_xxh3 = metadata_checksum(file, report);
  sync_path(file);
  sync_path(file.has_parent_path() ? file.parent_path() : ".");
  return report;
}

}  // namespace capstan::io

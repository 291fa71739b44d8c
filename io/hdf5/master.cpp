// master.cpp -- one H5Pset_virtual per part, with file names relative to the master's directory.
#include "io/hdf5/master.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/file_size_signal.hpp"
#include "io/file.hpp"
#include "io/hdf5/h5.hpp"
#include "io/hdf5/layout.hpp"

namespace capstan::io {
namespace {

struct Array {
  std::string_view variable;
  std::string_view component;
  DType dtype;
  std::vector<std::uint64_t> shape;  // of the virtual dataset
};

/// Escapes a name for H5Pset_virtual, in which "%b" is a block number and "%%" a percent sign.
std::string escaped(std::string_view name) {
  std::string text;
  for (const char c : name) text.append(c == '%' ? 2 : 1, c);
  return text;
}

struct Piece {
  const PartReport* part;
  const DatasetReport* dataset;
};

/// Returns the parts of `array`, in the order of their first rows.
std::vector<Piece> pieces_of(const Array& array, std::span<const PartReport> parts) {
  std::vector<Piece> pieces;
  for (const PartReport& part : parts) {
    for (const DatasetReport& dataset : part.datasets) {
      if (dataset.variable == array.variable && dataset.component == array.component)
        pieces.push_back({&part, &dataset});
    }
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.dataset->first_row < b.dataset->first_row; });
  return pieces;
}

void map_pieces(const h5::Properties& create, const Array& array, const h5::Space& array_space,
                std::span<const PartReport> parts, const std::filesystem::path& file) {
  const std::string path = escaped(fmt::format("/{}", dataset_path(array.variable, array.component)));
  std::uint64_t at = 0;
  for (const auto& [part, dataset] : pieces_of(array, parts)) {
    auto shape = array.shape;
    shape[0] = dataset->stored();
    if (shape[0] == 0) continue;  // an empty selection cannot be mapped
    h5::select_rows(array_space, array.shape, at, shape[0]);
    at += shape[0];
    const h5::Space source = h5::create_space(shape);
    h5::check(H5Pset_virtual(create.get(), array_space.get(), part->file.c_str(), path.c_str(), source.get()),
              "H5Pset_virtual", file);
  }
}

void write_array(const h5::File& to, const std::filesystem::path& file, const Array& array,
                 std::span<const PartReport> parts) {
  const h5::Properties create = h5::create_properties(H5P_DATASET_CREATE);
  const std::uint64_t missing = missing_value_bits(array.dtype);  // little-endian: HDF5 reads its low bytes
  h5::check(H5Pset_fill_value(create.get(), h5::memory_type(array.dtype), &missing), "H5Pset_fill_value",
            file);
  h5::check(H5Pset_obj_track_times(create.get(), 0), "H5Pset_obj_track_times", file);
  const h5::Space array_space = h5::create_space(array.shape);
  const bool empty = std::find(array.shape.begin(), array.shape.end(), 0U) != array.shape.end();
  if (!empty) map_pieces(create, array, array_space, parts, file);
  h5::check(H5Sselect_all(array_space.get()), "H5Sselect_all", file);

  const std::string path = dataset_path(array.variable, array.component);
  const h5::Properties groups = h5::intermediate_groups();
  const h5::Dataset dataset(h5::check(H5Dcreate2(to.get(), path.c_str(), h5::file_type(array.dtype),
                                                 array_space.get(), groups.get(), create.get(), H5P_DEFAULT),
                                      "H5Dcreate2", file));
}

void write_variable(const h5::File& to, const std::filesystem::path& file, const VariableInfo& variable,
                    std::span<const PartReport> parts) {
  const auto shown = [&](std::vector<std::uint64_t> shape) {
    shape[0] = variable.changed.value_or(shape[0]);
    return shape;
  };
  write_array(to, file, {variable.name, kValue, variable.dtype, shown(variable.shape)}, parts);
  for (const SlotInfo& slot : variable.slots) {
    write_array(to, file, {variable.name, slot.name, slot.dtype, shown(slot.shape)}, parts);
  }
  if (variable.changed)
    write_array(to, file, {variable.name, kChangedRows, DType::int64, {*variable.changed}}, parts);
  const std::string path = "variables/" + variable.name;
  const h5::Group group(h5::check(H5Gopen2(to.get(), path.c_str(), H5P_DEFAULT), "H5Gopen2", file));
  h5::write_attribute(group.get(), "dtype", std::string(to_string(variable.dtype)));
  h5::write_attribute(group.get(), "shape", variable.shape);
  h5::write_attribute(group.get(), "optimizer", variable.optimizer);
  h5::write_attribute(group.get(), "steps", variable.steps);
}

}  // namespace

void write_master(const std::filesystem::path& directory, const Manifest& manifest) {
  const FileSizeSignalBlock file_size_signal;
  const auto file = directory / kMasterFile;
  {
    const h5::Session session;
    h5::File to = h5::create_file(file);
    h5::write_attribute(to.get(), "format", std::string(kFormatName));
    const bool increment = manifest.base.has_value();
    h5::write_attribute(to.get(), "version", std::int64_t{increment ? kIncrementVersion : kFormatVersion});
    h5::write_attribute(to.get(), "step", manifest.step);
    if (increment) h5::write_attribute(to.get(), "base", manifest.base->checkpoint);
    for (const VariableInfo& variable : manifest.variables)
      write_variable(to, file, variable, manifest.parts);
    h5::check(H5Fflush(to.get(), H5F_SCOPE_GLOBAL), "H5Fflush", file);
    h5::close_file(std::move(to), file);
  }
  sync_path(file);
}

}  // namespace capstan::io

// hdf5_layout.cpp -- contiguous datasets with early allocation and without fill values.
#include "io/hdf5/hdf5_layout.hpp"

#include <algorithm>
#include <utility>

#include "io/file.hpp"
#include "io/hdf5/h5.hpp"
#include "io/hdf5/layout.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;

using Object = Handle<h5::IdTraits<H5Oclose>>;

h5::Properties early_allocation(const fs::path& file) {
  h5::Properties create = h5::create_properties(H5P_DATASET_CREATE);
  h5::check(H5Pset_layout(create.get(), H5D_CONTIGUOUS), "H5Pset_layout", file);
  h5::check(H5Pset_alloc_time(create.get(), H5D_ALLOC_TIME_EARLY), "H5Pset_alloc_time", file);
  h5::check(H5Pset_fill_time(create.get(), H5D_FILL_TIME_NEVER), "H5Pset_fill_time", file);
  h5::check(H5Pset_obj_track_times(create.get(), 0), "H5Pset_obj_track_times", file);
  return create;
}

std::uint64_t add_dataset(const h5::File& to, const fs::path& file, const Hdf5Dataset& dataset) {
  const h5::Space space = h5::create_space(dataset.shape);
  const h5::Properties groups = h5::intermediate_groups();
  const h5::Properties create = early_allocation(file);
  const h5::Dataset made(h5::check(H5Dcreate2(to.get(), dataset.path.c_str(), h5::file_type(dataset.dtype),
                                              space.get(), groups.get(), create.get(), H5P_DEFAULT),
                                   "H5Dcreate2", file));
  const auto& shape = dataset.shape;
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) return 0;
  const haddr_t offset = H5Dget_offset(made.get());
  if (offset == HADDR_UNDEF) h5::check(-1, "H5Dget_offset", file);
  return offset;
}

void write_texts(hid_t object, const std::string& name, const std::vector<std::string>& texts) {
  std::size_t length = 1;  // HDF5 has no strings of length 0
  for (const std::string& text : texts) length = std::max(length, text.size());
  std::string all;
  for (const std::string& text : texts) all += text + std::string(length - text.size(), '\0');
  const h5::Type type(h5::check(H5Tcopy(H5T_C_S1), "H5Tcopy", name));
  h5::check(H5Tset_size(type.get(), length), "H5Tset_size", name);
  h5::check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "H5Tset_strpad", name);
  h5::check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "H5Tset_cset", name);
  const h5::Space space = h5::create_space({texts.size()});
  const h5::Attribute attribute(
      h5::check(H5Acreate2(object, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
                "H5Acreate2", name));
  h5::check(H5Awrite(attribute.get(), type.get(), all.data()), "H5Awrite", name);
}

void add_attribute(const h5::File& to, const fs::path& file, const Hdf5Attribute& attribute) {
  const Object object(h5::check(H5Oopen(to.get(), attribute.object.c_str(), H5P_DEFAULT), "H5Oopen", file));
  if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
    return write_texts(object.get(), attribute.name, *texts);
  }
  if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) {
    return h5::write_attribute(object.get(), attribute.name.c_str(), *number);
  }
  if (const auto* number = std::get_if<double>(&attribute.value)) {
    return h5::write_attribute(object.get(), attribute.name.c_str(), *number);
  }
  if (const auto* counts = std::get_if<std::vector<std::uint64_t>>(&attribute.value)) {
    return h5::write_attribute(object.get(), attribute.name.c_str(), *counts);
  }
  h5::write_attribute(object.get(), attribute.name.c_str(), std::get<std::string>(attribute.value));
}

/// Upper bound of the size of the file.
std::uint64_t max_file_bytes(std::span<const Hdf5Dataset> datasets,
                             std::span<const Hdf5Attribute> attributes) {
  constexpr std::uint64_t kFileBytes = std::uint64_t{64} << 10;
  // Per dataset: an object header, its links, and up to a page of alignment.
  constexpr std::uint64_t kDatasetBytes = std::uint64_t{8} << 10;
  constexpr std::uint64_t kAttributeBytes = 512;  // without the bytes of strings
  std::uint64_t bytes = kFileBytes + kDatasetBytes * datasets.size() + kAttributeBytes * attributes.size();
  for (const Hdf5Dataset& dataset : datasets) {
    bytes += 4 * dataset.path.size() + dataset.shape.at(0) * row_bytes(dataset.shape, dataset.dtype);
  }
  for (const Hdf5Attribute& attribute : attributes) {
    if (const auto* text = std::get_if<std::string>(&attribute.value)) bytes += text->size();
    const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value);
    if (texts == nullptr) continue;
    for (const std::string& text : *texts) bytes += 2 * text.size();
  }
  return bytes;
}

}  // namespace

std::vector<std::uint64_t> lay_out_hdf5(const fs::path& file, std::span<const Hdf5Dataset> datasets,
                                        std::span<const Hdf5Attribute> attributes) {
  // Reserve first: HDF5 1.10 crashes at process exit if it could not write a file's metadata.
  reserve(file, max_file_bytes(datasets, attributes));
  const h5::Session session;
  h5::File to = h5::create_file(file);
  std::vector<std::uint64_t> offsets;
  for (const Hdf5Dataset& dataset : datasets) offsets.push_back(add_dataset(to, file, dataset));
  for (const Hdf5Attribute& attribute : attributes) add_attribute(to, file, attribute);
  h5::check(H5Fflush(to.get(), H5F_SCOPE_GLOBAL), "H5Fflush", file);
  h5::close_file(std::move(to), file);
  reserve(file, file_bytes(file));
  return offsets;
}

}  // namespace capstan::io

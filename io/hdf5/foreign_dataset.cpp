// foreign_dataset.cpp -- finds a dataset by name, or the only one; HDF5 converts its elements.
#include "io/hdf5/foreign_dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string_view>

#include "capstan/error.hpp"
#include "io/file.hpp"
#include "io/hdf5/h5.hpp"
#include "io/hdf5/layout.hpp"

namespace capstan::io {
namespace {

using Object = Handle<h5::IdTraits<H5Oclose>>;

std::optional<DType> float_type(hid_t type) {
  const std::size_t bytes = H5Tget_size(type);
  if (bytes == 4) return DType::float32;
  if (bytes == 8) return DType::float64;
  std::size_t sign, exponent_at, exponent, mantissa_at, mantissa;
  if (bytes != 2 || H5Tget_fields(type, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa) < 0)
    return std::nullopt;
  if (exponent == 5) return DType::float16;
  return exponent == 8 ? std::optional(DType::bfloat16) : std::nullopt;
}

/// Returns the smallest dtype that holds all values of the type.
std::optional<DType> integer_type(hid_t type) {
  const std::size_t bytes = H5Tget_size(type);
  const bool has_sign = H5Tget_sign(type) == H5T_SGN_2;
  if (bytes < 4 || (bytes == 4 && has_sign)) return DType::int32;
  if (bytes < 8 || (bytes == 8 && has_sign)) return DType::int64;
  return std::nullopt;
}

std::optional<DType> dtype_of(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      return float_type(type);
    case H5T_INTEGER:
      return integer_type(type);
    case H5T_ENUM:
      // The representation of booleans in h5py and in checkpoints.
      return H5Tequal(type, h5::file_type(DType::boolean)) > 0 ? std::optional(DType::boolean) : std::nullopt;
    default:
      return std::nullopt;
  }
}

herr_t add_dataset_name(hid_t group, const char* name, const H5L_info_t* /*info*/, void* names) {
  const Object object(H5Oopen(group, name, H5P_DEFAULT));  // invalid for a dangling link
  if (object.get() >= 0 && H5Iget_type(object.get()) == H5I_DATASET) {
    static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  }
  return 0;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxListed = 20;
  const std::size_t shown = std::min(names.size(), kMaxListed);
  return fmt::format("{}{}",
                     fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < names.size() ? ", ..." : "");
}

}  // namespace

struct ForeignDataset::Open {
  std::filesystem::path path;
  std::string name;
  std::vector<std::uint64_t> shape;
  DType dtype = DType::float32;
  bool scalar = false;
  // Members are destroyed in reverse order: the dataset must be closed before its file.
  h5::File file;
  h5::Dataset dataset;

  Error refused(Code code, std::string_view fault) const {
    return Error(code, fmt::format("{}: {}", path.string(), fault));
  }

  void find() {
    std::vector<std::string> names;
    h5::check(H5Lvisit(file.get(), H5_INDEX_NAME, H5_ITER_NATIVE, add_dataset_name, &names), "H5Lvisit",
              path);
    if (name.empty()) {
      if (names.empty()) throw refused(Code::not_found, "no dataset in this file");
      if (names.size() > 1) {
        throw refused(Code::invalid_argument,
                      fmt::format("{} datasets, expected one; select it with --dataset: {}", names.size(),
                                  listed(names)));
      }
      name = names.front();
    }
    const hid_t found = H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT);
    if (found < 0) {
      throw refused(Code::not_found, fmt::format("no dataset \"{}\"; the file has {}", name,
                                                 names.empty() ? "none" : listed(names)));
    }
    dataset.reset(found);
  }

  void read_type_and_shape() {
    const h5::Type type(h5::check(H5Dget_type(dataset.get()), "H5Dget_type", path));
    const auto found = dtype_of(type.get());
    if (!found) {
      throw refused(
          Code::invalid_argument,
          fmt::format(
              "unsupported element type of \"{}\", expected floats of 2, 4 or 8 bytes, integers up to "
              "int64, or bool",
              name));
    }
    dtype = *found;
    const h5::Space space(h5::check(H5Dget_space(dataset.get()), "H5Dget_space", path));
    if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) {
      throw refused(Code::invalid_argument,
                    fmt::format("\"{}\" has a null dataspace, expected a shape", name));
    }
    shape = h5::shape_of(space, path);
    scalar = shape.empty();
    if (scalar) shape = {1};
    check_shape(fmt::format("{} of {}", name, path.string()), shape, dtype);
  }
};

ForeignDataset::ForeignDataset(const std::filesystem::path& path, const std::string& name)
    : open_(std::make_unique<Open>()) {
  (void)open_to_read(path);  // HDF5 does not report a missing file as not_found
  const h5::Session session;
  try {
    open_->path = path;
    open_->name = name;
    if (H5Fis_hdf5(path.c_str()) <= 0) throw open_->refused(Code::data_loss, "not an HDF5 file");
    open_->file = h5::open_file(path);
    open_->find();
    open_->read_type_and_shape();
  } catch (...) {
    open_.reset();  // closes the HDF5 handles while `session` holds the lock
    throw;
  }
}

ForeignDataset::~ForeignDataset() {
  if (!open_) return;
  const h5::Session session;
  open_.reset();
}

DType ForeignDataset::dtype() const noexcept { return open_->dtype; }
const std::vector<std::uint64_t>& ForeignDataset::shape() const noexcept { return open_->shape; }

void ForeignDataset::read(std::uint64_t first, std::uint64_t rows, void* out) const {
  const h5::Session session;
  try {
    if (open_->scalar) {
      h5::check(
          H5Dread(open_->dataset.get(), h5::memory_type(open_->dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, out),
          "H5Dread", open_->path);
      return;
    }
    std::vector<std::uint64_t> shape = open_->shape;
    const h5::Space in_file = h5::create_space(shape);
    h5::select_rows(in_file, shape, first, rows);
    shape[0] = rows;
    const h5::Space in_memory = h5::create_space(shape);
    h5::check(H5Dread(open_->dataset.get(), h5::memory_type(open_->dtype), in_memory.get(), in_file.get(),
                      H5P_DEFAULT, out),
              "H5Dread", open_->path);
  } catch (const Error& error) {
    throw Error(Code::data_loss, fmt::format("{}: {} rows {} to {}: {}", open_->path.string(), open_->name,
                                             first, first + rows - 1, error.what()));
  }
}

}  // namespace capstan::io

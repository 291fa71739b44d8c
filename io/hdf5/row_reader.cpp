// row_reader.cpp -- reads hyperslabs; HDF5 converts the numbers.
#include "io/hdf5/row_reader.hpp"

#include <fmt/format.h>

#include <type_traits>

#include "capstan/dtype.hpp"
#include "io/file.hpp"
#include "io/hdf5/h5.hpp"

namespace capstan::io {
struct RowReader::Open {
  std::filesystem::path path;
  std::string name;
  Shape shape;
  // Members are destroyed in reverse order: the dataset must be closed before its file.
  h5::File file;
  h5::Dataset dataset;
};

RowReader::RowReader(const std::filesystem::path& path, const std::string& name)
    : open_(std::make_unique<Open>()) {
  (void)open_to_read(path);  // HDF5 does not report a missing file as not_found
  const h5::Session session;
  try {
    open_->path = path;
    open_->name = name;
    if (H5Fis_hdf5(path.c_str()) <= 0) throw Error(Code::data_loss, path.string() + ": not an HDF5 file");
    try {
      open_->file = h5::open_file(path);
    } catch (const Error& error) {
      throw Error(Code::data_loss, error.what());  // the signature is right, so the file is damaged
    }
    open_->dataset.reset(H5Dopen2(open_->file.get(), name.c_str(), H5P_DEFAULT));
    if (!open_->dataset || open_->dataset.get() < 0) {
      (void)open_->dataset.release();
      throw Error(Code::not_found, fmt::format("{}: no dataset \"{}\"", path.string(), name));
    }
    const h5::Space space(h5::check(H5Dget_space(open_->dataset.get()), "H5Dget_space", path));
    const std::vector<std::uint64_t> sizes = h5::shape_of(space, path);
    if (sizes.empty())
      throw Error(Code::invalid_argument,
                  fmt::format("{}: \"{}\" is a scalar, expected rows", path.string(), name));
    open_->shape.assign(sizes.begin(), sizes.end());
    const h5::Type type(h5::check(H5Dget_type(open_->dataset.get()), "H5Dget_type", path));
    const H5T_class_t kind = H5Tget_class(type.get());
    if (kind != H5T_INTEGER && kind != H5T_FLOAT) {
      throw Error(Code::invalid_argument,
                  fmt::format("{}: the elements of \"{}\" are not numbers", path.string(), name));
    }
  } catch (...) {
    open_.reset();  // closes the HDF5 handles while `session` holds the lock
    throw;
  }
}

RowReader::~RowReader() {
  if (!open_) return;
  const h5::Session session;
  open_.reset();
}

const Shape& RowReader::shape() const noexcept { return open_->shape; }

template <class T>
void RowReader::read(std::uint64_t first, std::uint64_t rows, T* out) const {
  const h5::Session session;
  std::vector<std::uint64_t> shape(open_->shape.begin(), open_->shape.end());
  const h5::Space in_file = h5::create_space(shape);
  h5::select_rows(in_file, shape, first, rows);
  shape[0] = rows;
  const h5::Space in_memory = h5::create_space(shape);
  hid_t type = H5T_NATIVE_UINT8;
  if constexpr (!std::is_same_v<T, std::uint8_t>) type = h5::memory_type(dtype_of<T>);
  try {
    h5::check(H5Dread(open_->dataset.get(), type, in_memory.get(), in_file.get(), H5P_DEFAULT, out),
              "H5Dread", open_->path);
  } catch (const Error& error) {
    throw Error(Code::data_loss, fmt::format("{}: {} rows {} to {}: {}", open_->path.string(), open_->name,
                                             first, first + rows - 1, error.what()));
  }
}

template void RowReader::read(std::uint64_t, std::uint64_t, std::uint8_t*) const;
template void RowReader::read(std::uint64_t, std::uint64_t, std::int32_t*) const;
template void RowReader::read(std::uint64_t, std::uint64_t, std::int64_t*) const;
template void RowReader::read(std::uint64_t, std::uint64_t, float*) const;
template void RowReader::read(std::uint64_t, std::uint64_t, double*) const;

}  // namespace capstan::io

// h5.cpp -- checked calls of the HDF5 C library; messages contain the C name of the failed call.
#include "io/hdf5/h5.hpp"

#include <fmt/format.h>

#include <string>

namespace capstan::io::h5 {
namespace {

std::mutex& process_lock() {
  static std::mutex mutex;
  return mutex;
}

/// H5Ewalk2 callback: takes the innermost record, which has the cause; the outer ones only propagate it.
herr_t take_innermost(unsigned depth, const H5E_error2_t* record, void* text) {
  if (depth == 0 && record->desc != nullptr) *static_cast<std::string*>(text) = record->desc;
  return 0;
}

std::string error_stack() {
  std::string text;
  if (H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, &text) < 0 || text.empty())
    text = "no reason given";
  std::erase(text, '\n');  // HDF5 formats a time with ctime, which appends a newline
  return text;
}

Properties file_access() {
  Properties access = create_properties(H5P_FILE_ACCESS);
  // flock fails on many parallel file systems, and a checkpoint is never read while it is written.
  check(H5Pset_file_locking(access.get(), /*use_file_locking=*/0, /*ignore_when_disabled=*/1),
        "H5Pset_file_locking", {});
  return access;
}

void write_scalar_or_list(hid_t object, const char* name, hid_t stored, hid_t memory, const Space& space,
                          const void* data) {
  const Attribute attribute(
      check(H5Acreate2(object, name, stored, space.get(), H5P_DEFAULT, H5P_DEFAULT), "H5Acreate2", name));
  check(H5Awrite(attribute.get(), memory, data), "H5Awrite", name);
}

}  // namespace

Session::Session() : lock_(process_lock()) {
  H5Eget_auto2(H5E_DEFAULT, &printer_, &printer_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Session::~Session() { H5Eset_auto2(H5E_DEFAULT, printer_, printer_data_); }

hid_t check(hid_t answer, std::string_view call, const std::filesystem::path& file, Where where) {
  if (answer >= 0) return answer;
  const std::string reason = error_stack();
  const auto mentions = [&](const char* words) { return reason.find(words) != std::string::npos; };
  const bool full = mentions("No space left") || mentions("quota exceeded") || mentions("File too large");
  throw call_failed(call, file.empty() ? reason : fmt::format("{}: {}", file.string(), reason), where,
                    full ? Code::resource_exhausted : Code::internal);
}

File create_file(const std::filesystem::path& path) {
  const Properties access = file_access();
  // Large arrays start at a page, for mmap and O_DIRECT.
  constexpr hsize_t kPageBytes = 4096;
  constexpr hsize_t kLargeBytes = 64 * 1024;
  check(H5Pset_alignment(access.get(), kLargeBytes, kPageBytes), "H5Pset_alignment", path);
  return File(check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), "H5Fcreate", path));
}

File open_file(const std::filesystem::path& path) {
  const Properties access = file_access();
  return File(check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), "H5Fopen", path));
}

void close_file(File file, const std::filesystem::path& path) {
  check(H5Fclose(file.release()), "H5Fclose", path);
}

Properties create_properties(hid_t property_class) {
  return Properties(check(H5Pcreate(property_class), "H5Pcreate", {}));
}

Properties intermediate_groups() {
  Properties links = create_properties(H5P_LINK_CREATE);
  check(H5Pset_create_intermediate_group(links.get(), 1), "H5Pset_create_intermediate_group", {});
  check(H5Pset_char_encoding(links.get(), H5T_CSET_UTF8), "H5Pset_char_encoding", {});
  return links;
}

Space create_space(const std::vector<std::uint64_t>& shape) {
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  return Space(
      check(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), "H5Screate_simple", {}));
}

std::vector<std::uint64_t> shape_of(const Space& space, const std::filesystem::path& file) {
  const int rank = H5Sget_simple_extent_ndims(space.get());
  check(rank, "H5Sget_simple_extent_ndims", file);
  std::vector<hsize_t> sizes(static_cast<std::size_t>(rank));
  if (rank > 0) {
    check(H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr), "H5Sget_simple_extent_dims", file);
  }
  return {sizes.begin(), sizes.end()};
}

void select_rows(const Space& space, const std::vector<std::uint64_t>& shape, std::uint64_t first_row,
                 std::uint64_t rows) {
  std::vector<hsize_t> start(shape.size(), 0);
  std::vector<hsize_t> count(shape.begin(), shape.end());
  start[0] = first_row;
  count[0] = rows;
  check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
        "H5Sselect_hyperslab", {});
}

namespace {

/// Creates a 16-bit floating-point type with `exponent` exponent bits; called once per type and never closed.
hid_t half_type(std::size_t exponent, std::size_t bias) {
  const hid_t type = check(H5Tcopy(H5T_IEEE_F32LE), "H5Tcopy", {});
  const std::size_t mantissa = 15 - exponent;
  check(H5Tset_fields(type, 15, mantissa, exponent, 0, mantissa), "H5Tset_fields", {});
  check(H5Tset_ebias(type, bias), "H5Tset_ebias", {});
  check(H5Tset_size(type, 2), "H5Tset_size", {});
  return type;
}

/// The enum type to which h5py maps numpy.bool_.
hid_t bool_type() {
  const hid_t type = check(H5Tenum_create(H5T_STD_I8LE), "H5Tenum_create", {});
  const signed char no = 0;
  const signed char yes = 1;
  check(H5Tenum_insert(type, "FALSE", &no), "H5Tenum_insert", {});
  check(H5Tenum_insert(type, "TRUE", &yes), "H5Tenum_insert", {});
  return type;
}

}  // namespace

hid_t memory_type(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return H5T_NATIVE_FLOAT;
    case DType::float64:
      return H5T_NATIVE_DOUBLE;
    case DType::int64:
      return H5T_NATIVE_INT64;
    case DType::int32:
      return H5T_NATIVE_INT32;
    case DType::float16:
    case DType::bfloat16:
    case DType::boolean:
      return file_type(dtype);
  }
  return -1;
}

hid_t file_type(DType dtype) {
  static const hid_t float16 = half_type(5, 15);
  static const hid_t bfloat16 = half_type(8, 127);
  static const hid_t boolean = bool_type();
  switch (dtype) {
    case DType::float32:
      return H5T_IEEE_F32LE;
    case DType::float64:
      return H5T_IEEE_F64LE;
    case DType::int64:
      return H5T_STD_I64LE;
    case DType::int32:
      return H5T_STD_I32LE;
    case DType::float16:
      return float16;
    case DType::bfloat16:
      return bfloat16;
    case DType::boolean:
      return boolean;
  }
  return -1;
}

void write_attribute(hid_t object, const char* name, std::int64_t value) {
  const Space scalar(check(H5Screate(H5S_SCALAR), "H5Screate", name));
  write_scalar_or_list(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, scalar, &value);
}

void write_attribute(hid_t object, const char* name, double value) {
  const Space scalar(check(H5Screate(H5S_SCALAR), "H5Screate", name));
  write_scalar_or_list(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, scalar, &value);
}

void write_attribute(hid_t object, const char* name, const std::vector<std::uint64_t>& values) {
  const Space list = create_space({values.size()});
  write_scalar_or_list(object, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, list, values.data());
}

void write_attribute(hid_t object, const char* name, const std::string& utf8) {
  const Type type(check(H5Tcopy(H5T_C_S1), "H5Tcopy", name));
  check(H5Tset_size(type.get(), H5T_VARIABLE), "H5Tset_size", name);
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "H5Tset_cset", name);
  const Space scalar(check(H5Screate(H5S_SCALAR), "H5Screate", name));
  const char* text = utf8.c_str();
  write_scalar_or_list(object, name, type.get(), type.get(), scalar, &text);
}

}  // namespace capstan::io::h5

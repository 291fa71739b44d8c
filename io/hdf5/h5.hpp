// h5.hpp -- the HDF5 C library: owned handles, one lock, and errors with HDF5's own message.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.hpp"
#include "capstan/dtype.hpp"
#include "capstan/error.hpp"

namespace capstan::io::h5 {

/// Process-wide lock of HDF5: Debian's build is not thread-safe, and ranks may be threads of one process.
/// Hold a Session while calling HDF5 or closing a handle. A Session also turns off HDF5's printing of the
/// error stack, and restores the program's setting when it ends.
class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  std::lock_guard<std::mutex> lock_;
  H5E_auto2_t printer_ = nullptr;
  void* printer_data_ = nullptr;
};

template <herr_t (*Close)(hid_t)>
struct IdTraits {
  using type = hid_t;
  static type none() noexcept { return -1; }
  static void free(type id) noexcept {
    (void)Close(id);
  }  // unchecked: where a failure matters, the close is an explicit, checked call
};
using File = Handle<IdTraits<H5Fclose>>;
using Group = Handle<IdTraits<H5Gclose>>;
using Dataset = Handle<IdTraits<H5Dclose>>;
using Space = Handle<IdTraits<H5Sclose>>;
using Type = Handle<IdTraits<H5Tclose>>;
using Attribute = Handle<IdTraits<H5Aclose>>;
using Properties = Handle<IdTraits<H5Pclose>>;

/// Throws `call_failed(call, ...)` with the innermost message of HDF5's error stack and `file` if `answer` is
/// negative; code resource_exhausted for a full disk, quota or file size limit, else internal.
hid_t check(hid_t answer, std::string_view call, const std::filesystem::path& file,
            Where where = Where::here());

File create_file(const std::filesystem::path& path);
File open_file(const std::filesystem::path& path);
/// Calls H5Fclose and checks it: HDF5 may report failed writes only then.
void close_file(File file, const std::filesystem::path& path);

Properties create_properties(hid_t property_class);
/// Link creation properties for H5Dcreate2 and H5Gcreate2 that create missing groups.
Properties intermediate_groups();
Space create_space(const std::vector<std::uint64_t>& shape);
/// Returns the dimensions; empty for a scalar. REQUIRES: not a null space.
std::vector<std::uint64_t> shape_of(const Space& space, const std::filesystem::path& file);
/// Selects rows [first_row, first_row + rows) with all their columns.
void select_rows(const Space& space, const std::vector<std::uint64_t>& shape, std::uint64_t first_row,
                 std::uint64_t rows);

hid_t memory_type(DType dtype);
/// Little-endian on every machine.
hid_t file_type(DType dtype);

void write_attribute(hid_t object, const char* name, std::int64_t value);
void write_attribute(hid_t object, const char* name, double value);
void write_attribute(hid_t object, const char* name, const std::vector<std::uint64_t>& values);
void write_attribute(hid_t object, const char* name, const std::string& utf8);

}  // namespace capstan::io::h5

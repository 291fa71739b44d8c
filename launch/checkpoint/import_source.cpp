// import_source.cpp -- reads rows of a .npy file by offset and of an HDF5 dataset through HDF5.
#include "launch/checkpoint/import_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "capstan/error.hpp"
#include "io/export/npy.hpp"
#include "io/file.hpp"
#include "io/hdf5/foreign_dataset.hpp"
#include "io/hdf5/layout.hpp"

namespace capstan::launch::checkpoint {
namespace {

namespace fs = std::filesystem;

void check_bools(const fs::path& file, const std::byte* bytes, std::uint64_t count) {
  if (std::all_of(bytes, bytes + count, [](std::byte b) { return b <= std::byte{1}; })) return;
  throw Error(Code::data_loss, fmt::format("{}: found a bool that is neither 0 nor 1", file.string()));
}

ImportSource open_npy(const fs::path& file) {
  const io::NpyHead head = io::read_npy_head(file);
  ImportSource source{head.dtype, head.shape};
  if (source.shape.empty()) source.shape = {1};
  const auto from = std::make_shared<io::FileDescriptor>(io::open_to_read(file));
  source.read = [from, file, offset = head.offset, bytes = io::row_bytes(source.shape, source.dtype),
                 dtype = head.dtype](std::uint64_t first, std::uint64_t rows, std::byte* out) {
    io::read_at(*from, file, offset + first * bytes, out, static_cast<std::size_t>(rows * bytes));
    if (dtype == DType::boolean) check_bools(file, out, rows * bytes);
  };
  return source;
}

ImportSource open_hdf5(const fs::path& file, const std::string& name) {
  const auto dataset = std::make_shared<io::ForeignDataset>(file, name);
  return {dataset->dtype(), dataset->shape(),
          [dataset](std::uint64_t first, std::uint64_t rows, std::byte* out) {
            dataset->read(first, rows, out);
          }};
}

}  // namespace

ImportSource open_import_source(const fs::path& file, const std::string& dataset) {
  if (file.extension() != ".npy") return open_hdf5(file, dataset);
  if (dataset.empty()) return open_npy(file);
  throw Error(Code::invalid_argument,
              fmt::format("--dataset {}: {} is a .npy file, which has a single array; omit the option",
                          dataset, file.string()));
}

}  // namespace capstan::launch::checkpoint

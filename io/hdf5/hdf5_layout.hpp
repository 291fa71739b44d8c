// hdf5_layout.hpp -- creates an HDF5 file with allocated, unwritten datasets.
//
// HDF5 writes the metadata; the caller then writes the data to the returned offsets, in pieces of any size,
// without HDF5.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "capstan/dtype.hpp"

namespace capstan::io {

/// A contiguous dataset.
struct Hdf5Dataset {
  std::string path = {};
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape = {};
};

/// The strings of a list are stored with one fixed length, as numpy stores them.
struct Hdf5Attribute {
  std::string object = {};  // "/", or the path of a group or dataset
  std::string name = {};
  std::variant<std::int64_t, double, std::string, std::vector<std::uint64_t>, std::vector<std::string>>
      value = {};
};

/// Creates `file`, or truncates an existing one, which keeps its inode. Returns the offset of each dataset's
/// data, or 0 for a dataset without elements; datasets of 64 KiB or more are aligned to 4 KiB. The data is
/// undefined until it is written. Allocates the complete file; throws Error(resource_exhausted) if the disk
/// is too full.
std::vector<std::uint64_t> lay_out_hdf5(const std::filesystem::path& file,
                                        std::span<const Hdf5Dataset> datasets,
                                        std::span<const Hdf5Attribute> attributes);

}  // namespace capstan::io

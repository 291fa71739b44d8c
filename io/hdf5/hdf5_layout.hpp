// hdf5_layout.hpp -- an HDF5 file in which every array has its place before any has its bytes.
//
// HDF5 writes the metadata; whoever has the bytes then writes them to the offsets, in pieces of any size and
// without the library.
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

/// Several texts are stored as strings of one length, as numpy does.
struct Hdf5Attribute {
  std::string object = {};  // "/", or the path of a group or dataset
  std::string name = {};
  std::variant<std::int64_t, double, std::string, std::vector<std::uint64_t>, std::vector<std::string>>
      value = {};
};

/// Creates `file`, or empties the one that is there, which stays the same to who has it open. Returns the
/// offset of each dataset's bytes, 0 for one without elements; large ones begin at a page. What is there
/// until it is written is not defined. Throws Error resource_exhausted unless there is room for all of it on
/// the disk.
std::vector<std::uint64_t> lay_out_hdf5(const std::filesystem::path& file,
                                        std::span<const Hdf5Dataset> datasets,
                                        std::span<const Hdf5Attribute> attributes);

}  // namespace capstan::io

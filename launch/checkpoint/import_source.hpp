// import_source.hpp -- the one array of a file that is imported, whatever kind of file it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "capstan/dtype.hpp"

namespace capstan::launch::checkpoint {

struct ImportSource {
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape = {};
  std::function<void(std::uint64_t first, std::uint64_t rows, std::byte* out)> read = {};
};

/// A .npy file by its name, or `dataset` of an HDF5 file. Throws Error: not_found, invalid_argument,
/// data_loss.
ImportSource open_import_source(const std::filesystem::path& file, const std::string& dataset);

}  // namespace capstan::launch::checkpoint

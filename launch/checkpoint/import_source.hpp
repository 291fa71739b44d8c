// import_source.hpp -- the array to import, from a .npy or an HDF5 file.
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
  /// Reads `rows` rows from row `first` on into `out`. Owns the open file. Throws Error.
  std::function<void(std::uint64_t first, std::uint64_t rows, std::byte* out)> read = {};
};

/// Opens a file with the suffix .npy, or else `dataset` of an HDF5 file; "" selects its only dataset. Throws
/// Error: not_found, invalid_argument, data_loss.
ImportSource open_import_source(const std::filesystem::path& file, const std::string& dataset);

}  // namespace capstan::launch::checkpoint

// foreign_dataset.hpp -- one dataset of any HDF5 file, converted to a dtype of variables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "capstan/dtype.hpp"

namespace capstan::io {

/// Reads datasets of any layout, chunked and compressed ones included. Converts big-endian numbers, and other
/// integer types to the smallest dtype that holds them. One thread at a time.
class ForeignDataset {
 public:
  /// `name` may be empty if the file has exactly one dataset. Throws Error: not_found (file or dataset; lists
  /// the datasets), invalid_argument (several datasets and no name, unsupported element type), data_loss (not
  /// an HDF5 file).
  ForeignDataset(const std::filesystem::path& path, const std::string& name);
  ~ForeignDataset();
  ForeignDataset(const ForeignDataset&) = delete;
  ForeignDataset& operator=(const ForeignDataset&) = delete;

  DType dtype() const noexcept;
  /// {1} for a scalar.
  const std::vector<std::uint64_t>& shape() const noexcept;
  /// Reads rows [first, first + rows) to `out`, which has capacity for them. Throws Error(data_loss).
  /// REQUIRES: the rows exist.
  void read(std::uint64_t first, std::uint64_t rows, void* out) const;

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

}  // namespace capstan::io

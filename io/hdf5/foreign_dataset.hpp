// foreign_dataset.hpp -- one dataset of an HDF5 file, whoever wrote it, as a variable could hold it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "capstan/dtype.hpp"

namespace capstan::io {

/// One thread at a time. Chunked and compressed ones too; big-endian numbers are turned, and integers that no
/// variable has become the next larger that one has.
class ForeignDataset {
 public:
  /// `name` may be empty when the file has one dataset only. Throws Error: not_found (file or dataset; lists
  /// what there is), invalid_argument (several datasets and no name, elements that no variable can have),
  /// data_loss (no HDF5).
  ForeignDataset(const std::filesystem::path& path, const std::string& name);
  ~ForeignDataset();
  ForeignDataset(const ForeignDataset&) = delete;
  ForeignDataset& operator=(const ForeignDataset&) = delete;

  DType dtype() const noexcept;
  /// (1) of a scalar.
  const std::vector<std::uint64_t>& shape() const noexcept;
  /// Rows [first, first + rows), which must be there, into room for them. Throws Error data_loss.
  void read(std::uint64_t first, std::uint64_t rows, void* out) const;

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

}  // namespace capstan::io

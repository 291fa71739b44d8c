// row_reader.hpp -- reads rows of one dataset of any HDF5 file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "capstan/array.hpp"

namespace capstan::io {

/// Keeps the file open until destruction. One thread at a time.
class RowReader {
 public:
  /// Throws Error: not_found (file or dataset), invalid_argument (a scalar, or not numbers), data_loss.
  RowReader(const std::filesystem::path& path, const std::string& name);
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  /// The first dimension is the number of rows.
  const Shape& shape() const noexcept;
  /// Reads rows [first, first + rows) and converts them to T: std::uint8_t, std::int32_t, std::int64_t, float
  /// or double. Throws Error(data_loss). REQUIRES: the rows exist.
  template <class T>
  void read(std::uint64_t first, std::uint64_t rows, T* out) const;

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

}  // namespace capstan::io

// row_reader.hpp -- rows of one dataset of an HDF5 file, whoever wrote it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "capstan/array.hpp"

namespace capstan::io {

/// One thread at a time. The file stays open as long as it lives.
class RowReader {
 public:
  /// Throws Error: not_found (file or dataset), invalid_argument (a scalar, or no numbers), data_loss.
  RowReader(const std::filesystem::path& path, const std::string& name);
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  /// Rows first.
  const Shape& shape() const noexcept;
  /// Rows [first, first + rows), which must be there. T is std::uint8_t, std::int32_t, std::int64_t, float or
  /// double, whatever numbers the file holds: they are converted.
  template <class T>
  void read(std::uint64_t first, std::uint64_t rows, T* out) const;

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

}  // namespace capstan::io

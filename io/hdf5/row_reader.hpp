// row_reader.hpp -- rows of one dataset of an HDF5 file, whoever wrote it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "capstan/array.hpp"

namespace capstan::io {

/// The types that rows can be read as; the file may hold any numbers.
enum class RowType : std::uint8_t { uint8, int32, int64, float32, float64 };

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
  /// Rows [first, first + rows), which must be there, converted to `type`.
  void read(std::uint64_t first, std::uint64_t rows, RowType type, void* out) const;

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

}  // namespace capstan::io

// saved_checkpoint.hpp -- a checkpoint read from its files, without a cluster and without a ps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/dtype.hpp"
#include "capstan/export.hpp"

namespace capstan {

namespace io {
class CheckpointReader;
}

/// Values of variables as they were saved, whatever the number of ps. Movable; one thread at a time.
class CAPSTAN_API SavedCheckpoint {
 public:
  /// Opens one checkpoint, <directory>/checkpoint-00000012, and compares every byte with its checksums.
  /// Throws Error: not_found, data_loss naming file and fault.
  explicit SavedCheckpoint(const std::filesystem::path& folder);
  SavedCheckpoint(SavedCheckpoint&&) noexcept;
  SavedCheckpoint& operator=(SavedCheckpoint&&) noexcept;
  ~SavedCheckpoint();

  const std::filesystem::path& folder() const noexcept;
  std::int64_t step() const noexcept;
  /// JSON, as given to CheckpointManager::save.
  const std::string& user_state() const noexcept;
  /// Of a SplitDataset, by its name: which splits were done. Throws Error(not_found).
  const std::string& position(const std::string& name) const;
  /// Names, in alphabetical order.
  std::vector<std::string> variables() const;
  /// Of a scalar variable (1).
  Shape shape(const std::string& variable) const;

  /// The whole variable, or rows [first, first + rows) of it. Throws Error: not_found listing the variables
  /// that there are, invalid_argument when T is not its dtype, out_of_range, data_loss when a file was
  /// deleted meanwhile.
  template <class T>
  Array<T> read(const std::string& variable) const {
    return read_rows<T>(variable, 0, shape(variable).at(0));
  }
  template <class T>
  Array<T> read_rows(const std::string& variable, std::int64_t first, std::int64_t rows) const {
    Array<T> out(shape_of_rows(variable, dtype_of<T>, first, rows));
    read_bytes(variable, first, rows, out.values.data());
    return out;
  }

 private:
  Shape shape_of_rows(const std::string& variable, DType dtype, std::int64_t first, std::int64_t rows) const;
  void read_bytes(const std::string& variable, std::int64_t first, std::int64_t rows, void* out) const;

  std::unique_ptr<io::CheckpointReader> reader_;
};

}  // namespace capstan

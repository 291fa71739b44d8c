// model.hpp -- Model: a trained model for serving, read from the file that `capstan checkpoint export`
// writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/dtype.hpp"

namespace capstan {

/// Read access to variables, without a cluster, a ps or HDF5. The file is memory-mapped if its file system
/// supports that, so that a table may exceed the size of memory. Movable; thread-safe.
///
/// The file must not change while it is open. To update it, rename another file over it and open that:
/// existing readers keep the old mapping. Truncating the file kills the process (SIGBUS).
class CAPSTAN_API Model {
 public:
  /// Reads and checks only the index, independently of the size of the tables. Throws Error: not_found,
  /// data_loss naming the file and the fault.
  explicit Model(const std::filesystem::path& file);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  /// Returns whether the file ends like a model file. Checks only the trailer.
  static bool is_one(const std::filesystem::path& file) noexcept;

  /// Reads every byte and verifies its checksum. Throws Error(data_loss) naming the file and the variable.
  void verify() const;

  const std::filesystem::path& file() const noexcept;
  /// Step of the exported checkpoint.
  std::int64_t step() const noexcept;
  /// JSON that the program saved with the checkpoint; "null" if the file does not have it.
  const std::string& user_state() const noexcept;
  /// Names, in alphabetical order.
  std::vector<std::string> variables() const;
  /// Throws Error(not_found) listing the existing variables, as do all calls that take a name.
  Shape shape(const std::string& variable) const;
  DType dtype(const std::string& variable) const;

  /// Returns true if the variable is a dynamic table, whose rows are looked up by key.
  bool is_table(const std::string& variable) const;
  /// Returns 1 for each key that a dynamic table has, 0 for the others. Throws Error: not_found,
  /// invalid_argument if the variable is not a table.
  std::vector<std::uint8_t> contains(const std::string& table, std::span<const std::int64_t> keys) const;
  /// Returns the keys of a dynamic table, in the order of its rows. Throws as contains() does.
  std::vector<std::int64_t> keys(const std::string& table) const;

  /// Returns the complete variable, or rows [first, first + rows) of it. Throws Error: invalid_argument if T
  /// is not its dtype, out_of_range, data_loss if the file is truncated.
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

  /// Returns row ids[i] of the variable as row i: for shape (5000, 64) and three ids, (3, 64). The ids of a
  /// dynamic table are keys; a key that it does not have yields zeros. Throws as read_rows does.
  template <class T>
  Array<T> lookup(const std::string& variable, std::span<const std::int64_t> ids) const {
    Array<T> out(shape_of_lookup(variable, dtype_of<T>, ids.size()));
    lookup_bytes(variable, ids, out.values.data());
    return out;
  }
  /// As above, into `out`. Also throws Error(invalid_argument) unless `out` has the size of the result.
  template <class T>
  void lookup(const std::string& variable, std::span<const std::int64_t> ids,
              std::span<Element<T>> out) const {
    check_size(shape_of_lookup(variable, dtype_of<T>, ids.size()), out.size());
    lookup_bytes(variable, ids, out.data());
  }

 private:
  Shape shape_of_rows(const std::string& variable, DType dtype, std::int64_t first, std::int64_t rows) const;
  Shape shape_of_lookup(const std::string& variable, DType dtype, std::size_t ids) const;
  static void check_size(const Shape& shape, std::size_t elements);
  void read_bytes(const std::string& variable, std::int64_t first, std::int64_t rows, void* out) const;
  void lookup_bytes(const std::string& variable, std::span<const std::int64_t> ids, void* out) const;

  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace capstan

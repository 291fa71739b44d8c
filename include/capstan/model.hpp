// model.hpp -- a trained model, read from the one file that `capstan checkpoint export` writes, for serving.
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

/// Values of variables, without a cluster, a ps or HDF5. The file is mapped into memory where its file system
/// allows it, so that a table may be larger than memory. Movable; any number of threads at once.
///
/// The file must stay as it is while it is open. To replace it, rename another over it and open that: who has
/// the old one open goes on with it. A file that is truncated instead ends the process (SIGBUS).
class CAPSTAN_API Model {
 public:
  /// Reads and checks the index alone, however large the tables are. Throws Error: not_found, data_loss
  /// naming file and fault.
  explicit Model(const std::filesystem::path& file);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  /// Ends as a model file does; nothing else is looked at.
  static bool is_one(const std::filesystem::path& file) noexcept;

  /// Reads every byte and compares it with its checksum. Throws Error data_loss naming file and variable.
  void verify() const;

  const std::filesystem::path& file() const noexcept;
  /// Of the checkpoint that it was made from.
  std::int64_t step() const noexcept;
  /// Names, in alphabetical order.
  std::vector<std::string> variables() const;
  /// Throws Error not_found listing the variables that there are; so does all that takes a name.
  Shape shape(const std::string& variable) const;
  DType dtype(const std::string& variable) const;

  /// The whole variable, or rows [first, first + rows) of it. Throws Error: invalid_argument when T is not
  /// its dtype, out_of_range, data_loss when the file ends too early.
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

  /// Row ids[i] of the variable as row i: of shape (5000, 64) and three ids, (3, 64). Throws as read_rows
  /// does.
  template <class T>
  Array<T> lookup(const std::string& variable, std::span<const std::int64_t> ids) const {
    Array<T> out(shape_of_lookup(variable, dtype_of<T>, ids.size()));
    lookup_bytes(variable, ids, out.values.data());
    return out;
  }
  /// The same into `out`, which has exactly as many elements. Throws also Error invalid_argument when it has
  /// not.
  template <class T>
  void lookup(const std::string& variable, std::span<const std::int64_t> ids,
              std::span<Element<T>> out) const {
    check_room(shape_of_lookup(variable, dtype_of<T>, ids.size()), out.size());
    lookup_bytes(variable, ids, out.data());
  }

 private:
  Shape shape_of_rows(const std::string& variable, DType dtype, std::int64_t first, std::int64_t rows) const;
  Shape shape_of_lookup(const std::string& variable, DType dtype, std::size_t ids) const;
  static void check_room(const Shape& shape, std::size_t room);
  void read_bytes(const std::string& variable, std::int64_t first, std::int64_t rows, void* out) const;
  void lookup_bytes(const std::string& variable, std::span<const std::int64_t> ids, void* out) const;

  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace capstan

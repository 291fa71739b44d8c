// frozen_rows.hpp -- interface of a snapshot of a shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace capstan::ps {

/// After construction, used by one thread, which may differ from the constructing one.
class FrozenRows {
 public:
  virtual ~FrozenRows() = default;

  /// Computes the list of rows. REQUIRES: called once, before the functions below.
  virtual void list_rows() = 0;
  /// Returns the number of arrays: values and slots.
  virtual std::size_t arrays() const noexcept = 0;
  /// Returns the number of rows in the snapshot.
  virtual std::uint64_t rows() const noexcept = 0;
  /// Returns the row number within the shard of the i-th row of the snapshot.
  virtual std::uint64_t row(std::uint64_t i) const noexcept = 0;
  /// Copies rows [first, first + count) of the snapshot of an array, while the rows of the shard change.
  /// Throws Error. REQUIRES: arrays and their rows are copied in order, each once; the caller does not hold
  /// `store_mutex`.
  virtual void copy(std::size_t array, std::uint64_t first, std::uint64_t count, std::byte* out,
                    std::mutex& store_mutex) = 0;
};

}  // namespace capstan::ps

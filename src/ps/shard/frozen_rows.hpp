// frozen_rows.hpp -- rows of a shard as they were at one moment, whatever keeps them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace capstan::ps {

class FrozenRows {
 public:
  virtual ~FrozenRows() = default;

  /// Before the next four, by the thread that calls these; needs no mutex.
  virtual void list_rows() = 0;
  /// Values and slots.
  virtual std::size_t arrays() const noexcept = 0;
  /// How many there are.
  virtual std::uint64_t rows() const noexcept = 0;
  /// The number in the shard of the i-th of them.
  virtual std::uint64_t row(std::uint64_t i) const noexcept = 0;
  /// The first-th row of those that there are and the next ones, of an array, as they were, while the rows
  /// themselves go on changing. The caller must not have the store's mutex. One thread. REQUIRES: the arrays
  /// in their order, of each the first rows first, each row once. Throws Error.
  virtual void copy(std::size_t array, std::uint64_t first, std::uint64_t count, std::byte* out,
                    std::mutex& store_mutex) = 0;
};

}  // namespace capstan::ps

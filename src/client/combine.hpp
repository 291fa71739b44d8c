// combine.hpp -- sums the gradient rows of duplicate ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/with_type.hpp"
#include "capstan/dtype.hpp"

namespace capstan::client {

inline bool strictly_increasing(std::span<const std::int64_t> ids) noexcept {
  for (std::size_t i = 1; i < ids.size(); ++i) {
    if (ids[i] <= ids[i - 1]) return false;
  }
  return true;
}

/// Returns the index of an id in a table of 2^bits slots: Fibonacci hashing (Knuth, The Art of Computer
/// Programming 3, 6.4), which spreads adjacent ids over the table.
inline std::size_t hash_slot(std::int64_t id, int bits) noexcept {
  return static_cast<std::size_t>((static_cast<std::uint64_t>(id) * 0x9E3779B97F4A7C15U) >> (64 - bits));
}

/// Adds a row of `width` elements to `to`.
template <class T>
void add_row(std::byte* to, const std::byte* from, std::uint64_t width) {
  auto* __restrict sum = reinterpret_cast<T*>(to);
  const auto* __restrict term = reinterpret_cast<const T*>(from);
  using W = Wrapping<T>;
  for (std::uint64_t i = 0; i < width; ++i) {
    sum[i] = static_cast<T>(static_cast<W>(sum[i]) + static_cast<W>(term[i]));
  }
}

/// Finds duplicate ids and sums their rows. Reuses its memory. Used by one thread at a time.
class Combiner {
 public:
  struct Rows {
    std::span<const std::int64_t> ids;  // in the order of their first appearance
    const std::byte* values = nullptr;
  };

  /// `values` has one row of `width` elements for each id; ids are in [0, rows). Without duplicates it
  /// returns the arguments, at a cost of one or two nanoseconds per id; otherwise memory that is valid
  /// until the next call. Rows are summed in the order of the call, so the result is deterministic.
  Rows combine(DType dtype, std::uint64_t width, std::uint64_t rows, std::span<const std::int64_t> ids,
               const void* values);
  /// Returns true if there are no duplicates; ids are in [0, rows).
  bool all_different(std::uint64_t rows, std::span<const std::int64_t> ids);

 private:
  /// Index of an id among the distinct ids.
  struct Slot {
    std::int64_t id;
    std::uint32_t call;  // a slot of an earlier call is free
    std::uint32_t index;
  };

  /// Finds the index of each id; fills ids_.
  void find_indices(std::span<const std::int64_t> ids);

  std::vector<std::uint64_t> seen_;  // bitmap of rows, all zero between calls
  std::vector<Slot> slots_;          // open addressing; the size is a power of two
  std::uint32_t call_ = 0;
  std::vector<std::uint32_t> indices_;
  std::vector<std::int64_t> ids_;
  std::vector<std::byte> values_;
};

}  // namespace capstan::client

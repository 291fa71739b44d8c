// gradient_sums.hpp -- sums of the gradients of frequently pushed rows, over several pushes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "capstan/dtype.hpp"
#include "capstan/variable_options.hpp"

namespace capstan::client {

/// Holds the sums of one variable. An id may have a sum in one place only, which it shares with other ids.
/// The most frequent of them has it, from its second occurrence on (Boyer and Moore, "MJRTY - A fast majority
/// vote algorithm", 1991). Results depend on nothing but the calls since clear(), so each run of a closure
/// sends the same pushes. Used by one thread at a time.
class GradientSums {
 public:
  /// Rows of a gradient: row i belongs to ids[i] and is at `values + order[i] * row_bytes`.
  struct Rows {
    std::span<const std::int64_t> ids;
    std::span<const std::uint32_t> order;
    const std::byte* values = nullptr;
  };

  /// REQUIRES: width and options.rows are not 0.
  GradientSums(DType dtype, std::uint64_t width, const CombinePushes& options);

  /// Adds the rows of frequent ids to their sums. Returns the other rows of this push, in order; valid until
  /// the next call. REQUIRES: ids are not negative.
  Rows add(std::span<const std::int64_t> ids, const std::byte* gradient);
  /// Returns true once `pushes` pushes were added since the last take().
  bool due() const noexcept { return added_ >= pushes_; }
  /// Returns true if no push was added since the last take() or clear(). Unlike whether there are sums, this
  /// does not depend on the ids.
  bool idle() const noexcept { return added_ == 0; }
  /// Returns the sums and starts new ones; the ids keep their places. Valid until the next call.
  Rows take();
  /// Drops the sums, and forgets which ids are frequent.
  void clear();

 private:
  struct Place {
    std::int64_t id = -1;
    std::uint32_t votes = 0;  // for `id`
    bool summed = false;      // has a sum
  };

  template <class T>
  void add_rows(std::span<const std::int64_t> ids, const std::byte* gradient);

  DType dtype_;
  std::uint64_t width_;
  std::uint32_t pushes_;
  int bits_;                 // of the index of a place
  std::uint32_t added_ = 0;  // pushes since the last take()
  bool used_ = false;        // since the last clear()
  std::vector<Place> places_;
  std::vector<std::byte> sums_;        // one row for each place
  std::vector<std::uint32_t> summed_;  // places with a sum, in the order in which these began
  std::vector<std::int64_t> ids_;      // of the last result
  std::vector<std::uint32_t> order_;   // of the last result
};

}  // namespace capstan::client

// combine.hpp -- one row for each id: gradients of ids that are named twice are summed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "capstan/dtype.hpp"

namespace capstan::client {

inline bool strictly_increasing(std::span<const std::int64_t> ids) noexcept {
  for (std::size_t i = 1; i < ids.size(); ++i) {
    if (ids[i] <= ids[i - 1]) return false;
  }
  return true;
}

bool all_different(std::span<const std::int64_t> ids);

struct Combined {
  std::vector<std::int64_t> ids;  // ascending
  std::vector<std::byte> rows;
};

/// `rows` has one row of `width` elements for each id. Sums are formed in the order of the call, so the
/// result does not depend on anything else.
Combined combine(DType dtype, std::uint64_t width, std::span<const std::int64_t> ids, const void* rows);

}  // namespace capstan::client

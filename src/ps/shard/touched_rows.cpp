// touched_rows.cpp -- sets ranges of bits word by word, and lists the set bits.
#include "ps/shard/touched_rows.hpp"

#include <algorithm>
#include <bit>

namespace capstan::ps {

void TouchedRows::add(std::uint64_t first, std::uint64_t count) noexcept {
  for (std::uint64_t row = first; row < first + count;) {
    const std::uint64_t from = row % 64, bits = std::min(64 - from, first + count - row);
    bits_[row / 64] |= (~std::uint64_t{0} >> (64 - bits)) << from;
    row += bits;
  }
}

std::vector<std::uint32_t> TouchedRows::list() const {
  std::size_t count = 0;
  for (const std::uint64_t bits : bits_) count += static_cast<std::size_t>(std::popcount(bits));
  std::vector<std::uint32_t> rows;
  rows.reserve(count);
  for (std::size_t word = 0; word < bits_.size(); ++word) {
    for (std::uint64_t left = bits_[word]; left != 0; left &= left - 1)
      rows.push_back(static_cast<std::uint32_t>(word * 64) +
                     static_cast<std::uint32_t>(std::countr_zero(left)));
  }
  return rows;
}

}  // namespace capstan::ps

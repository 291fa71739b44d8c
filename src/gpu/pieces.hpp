// pieces.hpp -- more work than numbers of 31 bits can count, in pieces that they can.
#pragma once

#include <cstdint>

#include "capstan/error.hpp"

namespace capstan::gpu {

/// piece(first row, rows) for all `rows` of so many packs each, with less than 2^31 packs in a piece. Throws
/// Error(invalid_argument) where one row has as many.
template <class Piece>
void in_pieces(std::uint32_t rows, std::uint64_t packs, const Piece& piece) {
  constexpr std::uint64_t kMost = (std::uint64_t{1} << 31) - 1;
  if (packs == 0) return;
  if (packs > kMost) throw Error(Code::invalid_argument, "a row is longer than a GPU's kernels can take");
  const std::uint64_t at_once = kMost / packs;
  for (std::uint64_t first = 0; first < rows; first += at_once) {
    const std::uint64_t left = rows - first;
    piece(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(left < at_once ? left : at_once));
  }
}

}  // namespace capstan::gpu

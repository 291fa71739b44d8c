// pieces.hpp -- divides work with indices of more than 31 bits into pieces with indices of 31 bits.
#pragma once

#include <cstdint>

#include "capstan/error.hpp"

namespace capstan::gpu {

/// Calls piece(first row, number of rows) until all `rows` are covered. A row has `packs` packs, and a piece
/// fewer than 2^31. Throws Error(invalid_argument) if a single row has 2^31 packs or more.
template <class Piece>
void in_pieces(std::uint32_t rows, std::uint64_t packs, const Piece& piece) {
  constexpr std::uint64_t kMaxPacks = (std::uint64_t{1} << 31) - 1;
  if (packs == 0) return;
  if (packs > kMaxPacks)
    throw Error(Code::invalid_argument, "GPU kernel: found a row of 2^31 packs or more, expected fewer");
  const std::uint64_t at_once = kMaxPacks / packs;
  for (std::uint64_t first = 0; first < rows; first += at_once) {
    const std::uint64_t left = rows - first;
    piece(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(left < at_once ? left : at_once));
  }
}

}  // namespace capstan::gpu

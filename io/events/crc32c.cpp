// crc32c.cpp -- eight bytes at a time, from eight tables ("slicing by 8").
#include "io/events/crc32c.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace capstan::io {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kReversedPolynomial = 0x82f63b78U;
constexpr std::size_t kSlices = 8;

/// kTables[k][b]: contribution of byte b to the checksum if k more bytes follow it.
constexpr std::array<std::array<std::uint32_t, 256>, kSlices> kTables = [] {
  std::array<std::array<std::uint32_t, 256>, kSlices> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t slice = 1; slice < kSlices; ++slice) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[slice - 1][byte];
      tables[slice][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) noexcept {
  std::uint32_t crc = ~std::uint32_t{0};
  for (; bytes.size() >= kSlices; bytes.remove_prefix(kSlices)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    word ^= crc;
    crc = 0;
    for (std::size_t i = 0; i < kSlices; ++i) crc ^= kTables[kSlices - 1 - i][word >> (8 * i) & 0xff];
  }
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  }
  return ~crc;
}

}  // namespace capstan::io

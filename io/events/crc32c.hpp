// crc32c.hpp -- CRC-32C (Castagnoli) and its masked form in TFRecord files.
#pragma once

#include <cstdint>
#include <string_view>

namespace capstan::io {

std::uint32_t crc32c(std::string_view bytes) noexcept;
/// Masks a CRC as TFRecord does, because a CRC of data that contains CRCs detects fewer errors.
constexpr std::uint32_t masked(std::uint32_t crc) noexcept {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

}  // namespace capstan::io

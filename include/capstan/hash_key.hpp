// hash_key.hpp -- keys of dynamic tables made from texts.
#pragma once

#include <cstdint>
#include <string_view>

#include "capstan/detail/export.hpp"

namespace capstan {

/// Returns a key for a text: XXH3 with 64 bits (xxhash.com). Different salts give independent keys, for
/// columns that share a table. Two of n texts have the same key with probability n^2 / 2^65.
CAPSTAN_API std::int64_t hash_key(std::string_view text, std::uint64_t salt = 0) noexcept;

}  // namespace capstan

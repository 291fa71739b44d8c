// hash_key.cpp -- XXH3 of a text.
#include "capstan/hash_key.hpp"

#include <xxhash.h>

namespace capstan {

std::int64_t hash_key(std::string_view text, std::uint64_t salt) noexcept {
  return static_cast<std::int64_t>(XXH3_64bits_withSeed(text.data(), text.size(), salt));
}

}  // namespace capstan

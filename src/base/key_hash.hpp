// key_hash.hpp -- the hash of a dynamic table's keys.
#pragma once

#include <cstdint>

namespace capstan {

/// The finalizer of SplitMix64: variant 13 of D. Stafford, "Better bit mixing", 2011. A bijection.
constexpr std::uint64_t hash_of(std::int64_t key) noexcept {
  auto x = static_cast<std::uint64_t>(key);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

}  // namespace capstan

// admission_draw.hpp -- the random number that decides whether a push adds a key to a dynamic table.
#pragma once

#include <cstdint>

#include "protocol/push_format.hpp"
#include "protocol/table_layout.hpp"

namespace capstan::ps {

/// Returns a number in [0, 1) for a key and a push. It does not depend on the order in which pushes arrive,
/// nor on the entries into which a push is split. A closure that runs again draws the same numbers, on any
/// worker; so does a later job for the closure with the same number.
inline double admission_draw(std::int64_t key, const protocol::PushHeader& entry) noexcept {
  // (closure, replica, call) names a push in a closure, (rank, call) one outside of closures.
  const std::uint64_t origin = entry.closure != 0 ? entry.closure : std::uint64_t{entry.rank} << 32;
  const std::uint64_t call = std::uint64_t{entry.replica} << 32 | entry.call;
  constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;  // of SplitMix64; the hash of 0 is 0
  std::uint64_t mixed = 0;
  for (const std::uint64_t part : {origin, call, static_cast<std::uint64_t>(key)})
    mixed = protocol::hash_of(static_cast<std::int64_t>(mixed + part + kGamma));
  return static_cast<double>(mixed >> 11) * 0x1p-53;
}

}  // namespace capstan::ps

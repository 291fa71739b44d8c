// disk_timeout.hpp -- how long every ps may take to write or read its part of a checkpoint.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "strategy/strategy.hpp"

namespace capstan::strategy {

/// Writing or reading waits for disks, which may be slow: ten times the usual timeout, and more for
/// much data, which is written no faster than --checkpoint-bandwidth.
inline std::chrono::milliseconds disk_timeout(const Strategy& strategy, std::uint64_t bytes) {
  constexpr std::uint64_t kSlow = 10'000'000;  // bytes a second
  const std::uint64_t most = strategy.runtime()->settings().bytes("checkpoint-bandwidth");
  const double rate = static_cast<double>(most == 0 ? kSlow : std::min(kSlow, most));
  return 10 * strategy.runtime()->wait_timeout() +
         std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * static_cast<double>(bytes) / rate));
}
/// For all variables.
inline std::chrono::milliseconds disk_timeout(const Strategy& strategy) {
  std::uint64_t bytes = 0;
  for (const auto& variable : strategy.variables()) {
    const auto& d = variable->descriptor;
    bytes += d.rows() * d.width() *
             (size_of(d.dtype) +
              protocol::slots_of(d.optimizer.kind).size() * size_of(protocol::slot_dtype(d.dtype)));
  }
  return disk_timeout(strategy, bytes);
}

}  // namespace capstan::strategy

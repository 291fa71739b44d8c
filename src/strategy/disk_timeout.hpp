// disk_timeout.hpp -- time limit for every ps to write or read its part of a checkpoint.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "strategy/strategy.hpp"

namespace capstan::strategy {

/// Returns ten times the usual timeout, for slow disks, plus the time to transfer `bytes` at 10 MB/s or
/// --checkpoint-bandwidth, whichever is lower.
inline std::chrono::milliseconds disk_timeout(const Strategy& strategy, std::uint64_t bytes) {
  constexpr std::uint64_t kSlowDisk = 10'000'000;  // bytes per second
  const std::uint64_t limit = strategy.runtime()->settings().bytes("checkpoint-bandwidth");
  const double rate = static_cast<double>(limit == 0 ? kSlowDisk : std::min(kSlowDisk, limit));
  return 10 * strategy.runtime()->wait_timeout() +
         std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * static_cast<double>(bytes) / rate));
}
/// The same for the values and slots of all variables.
inline std::chrono::milliseconds disk_timeout(const Strategy& strategy) {
  std::uint64_t bytes = 0;
  for (const auto& variable : strategy.variables().all()) {
    const auto& d = variable->descriptor;
    bytes += d.rows() * d.width() *
             (size_of(d.dtype) +
              protocol::slots_of(d.optimizer.kind).size() * size_of(protocol::slot_dtype(d.dtype)));
  }
  return disk_timeout(strategy, bytes);
}

}  // namespace capstan::strategy

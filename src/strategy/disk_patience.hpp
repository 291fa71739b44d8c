// disk_patience.hpp -- how long every ps may take to write or read its part of a checkpoint.
#pragma once

#include <chrono>

#include "strategy/strategy.hpp"

namespace capstan::strategy {

/// Writing or reading waits for disks, which have their own pace: ten times the usual patience, and more for
/// much data.
inline std::chrono::milliseconds disk_patience(const Strategy& strategy, std::uint64_t bytes) {
  return 10 * strategy.runtime()->patience() + std::chrono::milliseconds(bytes / 10'000);
}
/// For all variables.
inline std::chrono::milliseconds disk_patience(const Strategy& strategy) {
  std::uint64_t bytes = 0;
  for (const auto& variable : strategy.variables()) {
    const auto& d = variable->descriptor;
    bytes +=
        d.rows() * d.width() *
        (size_of(d.dtype) + shard::slots_of(d.optimizer.kind).size() * size_of(shard::slot_dtype(d.dtype)));
  }
  return disk_patience(strategy, bytes);
}

}  // namespace capstan::strategy

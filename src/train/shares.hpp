// shares.hpp -- division of a data set into shares, and the order and batches of an epoch.
//
// The data is divided into as many shares as there are workers at the start; example i is in share i mod
// shares. The share of a dead worker is assigned to another worker.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "train/counter_rng.hpp"

namespace capstan::train {

/// Number of examples in share `share` of `shares`.
constexpr std::int64_t share_size(std::int64_t total, std::int64_t share, std::int64_t shares) {
  return total / shares + (share < total % shares ? 1 : 0);
}

/// Number of steps in an epoch, each of up to `batch` examples of every share.
constexpr std::int64_t steps_in_epoch(std::int64_t total, std::int64_t shares, std::int64_t batch) {
  return (share_size(total, 0, shares) + batch - 1) / batch;
}

/// Number of examples of a share in a step; the last steps may have fewer than `batch`, or none.
constexpr std::int64_t batch_size(std::int64_t size, std::int64_t step, std::int64_t batch) {
  return std::clamp<std::int64_t>(size - step * batch, 0, batch);
}

/// Number of examples of all shares in a step.
constexpr std::int64_t examples_in_step(std::int64_t total, std::int64_t shares, std::int64_t batch,
                                        std::int64_t step) {
  std::int64_t sum = 0;
  for (std::int64_t share = 0; share < shares; ++share) {
    sum += batch_size(share_size(total, share, shares), step, batch);
  }
  return sum;
}

/// Returns a permutation of 0 to size - 1 that depends only on the arguments, so that a resumed run repeats
/// it.
inline std::vector<std::uint32_t> shuffled(std::int64_t size, std::uint64_t seed, std::int64_t epoch,
                                           std::int64_t share) {
  std::vector<std::uint32_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0U);
  const CounterRng random(mix64(seed) + static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(share));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
  return order;
}

}  // namespace capstan::train

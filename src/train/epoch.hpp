// epoch.hpp -- the loop of an epoch on a worker, whatever the model: which examples, what their gradient is
// divided by, where the others are waited for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "capstan/variable_options.hpp"
#include "train/orders.hpp"
#include "train/shares.hpp"

namespace capstan::train {

/// Calls step(share, examples, scale) for each batch; the gradient that it pushes is that of scale times the
/// sum of the examples' losses. Synchronous workers push sums that add up to the mean over what all have in
/// a step, others the mean over their own batch.
template <class Step>
void run_epoch(const TrainOrder& order, const UpdateGroup& group, const Step& step) {
  std::vector<std::vector<std::uint32_t>> orders;
  for (const std::int64_t share : order.shares.mine) {
    const std::int64_t size = share_size(order.total, share, order.shares.all);
    orders.push_back(shuffled(size, order.seed, order.epoch, share));
  }
  const std::int64_t steps = steps_in_epoch(order.total, order.shares.all, order.batch);
  for (std::int64_t number = 0; number < steps; ++number) {
    for (std::size_t i = 0; i < orders.size(); ++i) {
      const auto size = static_cast<std::int64_t>(orders[i].size());
      const std::int64_t mine = batch_size(size, number, order.batch);
      if (mine == 0) continue;
      const std::int64_t divisor = order.mode == Mode::synchronous
                                       ? examples_in_step(order.total, order.shares.all, order.batch, number)
                                       : mine;
      const std::span<const std::uint32_t> all(orders[i]);
      step(order.shares.mine[i],
           all.subspan(static_cast<std::size_t>(number * order.batch), static_cast<std::size_t>(mine)),
           1 / static_cast<double>(divisor));
    }
    // Also of asynchronous workers, who then wait for their own pushes: a worker that computes faster than a
    // ps applies would read values that miss hundreds of its steps.
    group.end_step();
  }
  group.leave();
}

}  // namespace capstan::train

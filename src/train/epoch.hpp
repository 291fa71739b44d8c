// epoch.hpp -- a worker's loop over the batches of an epoch, independent of the model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "capstan/variable_options.hpp"
#include "train/shares.hpp"
#include "train/tasks.hpp"

namespace capstan::train {

/// Calls step(share, examples, scale) for each batch; the step pushes the gradient of scale times the sum of
/// the examples' losses. In synchronous mode `scale` is 1 / (examples of all workers in the step), so the sum
/// of the workers' pushes is the mean gradient. In other modes it is 1 / (examples of the worker's batch).
template <class Step>
void run_epoch(const TrainTask& task, const UpdateGroup& group, const Step& step) {
  std::vector<std::vector<std::uint32_t>> permutations;
  for (const std::int64_t share : task.shares.assigned) {
    const std::int64_t size = share_size(task.total, share, task.shares.total_count);
    permutations.push_back(shuffled(size, task.seed, task.epoch, share));
  }
  const std::int64_t steps = steps_in_epoch(task.total, task.shares.total_count, task.batch);
  for (std::int64_t number = 0; number < steps; ++number) {
    for (std::size_t i = 0; i < permutations.size(); ++i) {
      const auto size = static_cast<std::int64_t>(permutations[i].size());
      const std::int64_t count = batch_size(size, number, task.batch);
      if (count == 0) continue;
      const std::int64_t divisor =
          task.mode == Mode::synchronous
              ? examples_in_step(task.total, task.shares.total_count, task.batch, number)
              : count;
      const std::span<const std::uint32_t> all(permutations[i]);
      step(task.shares.assigned[i],
           all.subspan(static_cast<std::size_t>(number * task.batch), static_cast<std::size_t>(count)),
           1 / static_cast<double>(divisor));
    }
    // Makes asynchronous workers wait for their own pushes. A worker that computes faster than a ps applies
    // pushes would otherwise read values that lack hundreds of its steps.
    group.end_step();
  }
  group.leave();
}

}  // namespace capstan::train

// step_clock.hpp -- holds workers that are too far ahead of the slowest one.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "simulate/simulation.hpp"

namespace capstan::simulate {

/// Counts the steps of all workers. A worker may begin a step if the slowest worker is at most `staleness`
/// steps behind; 0 makes steps synchronous, and a negative value never holds a worker.
class StepClock {
 public:
  StepClock(int workers, int staleness)
      : staleness_(staleness), steps_(static_cast<std::size_t>(workers), 0) {}

  /// Calls `begin` now, or when the worker may begin its next step.
  void begin(int worker, Simulation::Action begin) {
    const int step = steps_[static_cast<std::size_t>(worker)];
    if (staleness_ < 0 || step - slowest_ <= staleness_) return begin();
    held_.emplace_back(step, std::move(begin));
  }
  /// Ends a step of the worker.
  void end(int worker) {
    const auto step = static_cast<std::size_t>(steps_[static_cast<std::size_t>(worker)]++);
    if (staleness_ < 0) return;
    if (step >= ended_.size()) ended_.resize(step + 1, 0);
    ++ended_[step];
    bool advanced = false;
    while (static_cast<std::size_t>(slowest_) < ended_.size() &&
           ended_[static_cast<std::size_t>(slowest_)] == steps_.size()) {
      ++slowest_;
      advanced = true;
    }
    if (!advanced) return;
    std::vector<std::pair<int, Simulation::Action>> held = std::exchange(held_, {});
    for (auto& [next, begin] : held) {
      if (next - slowest_ <= staleness_) {
        begin();
      } else {
        held_.emplace_back(next, std::move(begin));
      }
    }
  }
  int slowest() const noexcept { return slowest_; }

 private:
  int staleness_;
  int slowest_ = 0;                 // steps of the slowest worker
  std::vector<int> steps_;          // ended, by worker
  std::vector<std::size_t> ended_;  // workers that have ended a step, by step
  std::vector<std::pair<int, Simulation::Action>> held_;
};

}  // namespace capstan::simulate

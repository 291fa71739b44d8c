// simulation.cpp -- the event loop.
#include "simulate/simulation.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "capstan/error.hpp"

namespace capstan::simulate {

void Simulation::after(double delay, Action action) {
  if (!std::isfinite(delay) || delay < 0) {
    throw Error(
        Code::invalid_argument,
        fmt::format("cannot schedule an event: its delay is {} s, expected a finite number of at least 0",
                    delay));
  }
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(actions_.size()));
    actions_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  actions_[slot] = std::move(action);
  pending_.push({now_ + delay, scheduled_++, slot});
}

void Simulation::run_until(double end) {
  stopped_ = false;
  while (!pending_.empty() && !stopped_) {
    if (pending_.top().time > end) {
      now_ = end;
      return;
    }
    const Event event = pending_.top();
    pending_.pop();
    const Action action = std::exchange(actions_[event.slot], nullptr);  // it may schedule others
    free_.push_back(event.slot);
    now_ = event.time;
    ++events_;
    action();
  }
}

}  // namespace capstan::simulate

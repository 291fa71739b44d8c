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
  pending_.push({now_ + delay, scheduled_++, std::move(action)});
}

void Simulation::run_until(double end) {
  stopped_ = false;
  while (!pending_.empty() && !stopped_) {
    if (pending_.top().time > end) {
      now_ = end;
      return;
    }
    // top() is const because a change of the order would break the heap; the action is not part of the order.
    Event event = std::move(const_cast<Event&>(pending_.top()));
    pending_.pop();
    now_ = event.time;
    ++events_;
    event.action();
  }
}

}  // namespace capstan::simulate

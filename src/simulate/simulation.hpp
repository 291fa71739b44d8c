// simulation.hpp -- the clock and the pending events of a discrete-event simulation.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace capstan::simulate {

/// Runs actions in the order of their times. Actions of one time run in the order in which they were
/// scheduled, so a simulation with the same seed repeats exactly. All times are in seconds. Used by one
/// thread.
class Simulation {
 public:
  using Action = std::function<void()>;

  double now() const noexcept { return now_; }
  /// Number of actions that have run.
  std::uint64_t events() const noexcept { return events_; }

  /// Schedules an action `delay` seconds from now. Throws Error(invalid_argument) if the delay is negative or
  /// not finite.
  void after(double delay, Action action);
  /// Runs all actions until none is left or the next one is later than `end`, and then sets the clock to the
  /// time of the last action, or to `end` if actions are left.
  void run_until(double end);
  /// Makes run_until() return after the current action, although actions are left.
  void stop() noexcept { stopped_ = true; }

 private:
  struct Event {
    double time;
    std::uint64_t number;
    std::uint32_t slot;  // of its action
    bool operator>(const Event& other) const noexcept {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  double now_ = 0;
  std::uint64_t scheduled_ = 0;
  std::uint64_t events_ = 0;
  bool stopped_ = false;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> pending_;
  std::vector<Action> actions_;  // beside the heap, which moves its elements often
  std::vector<std::uint32_t> free_;
};

}  // namespace capstan::simulate

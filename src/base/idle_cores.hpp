// idle_cores.hpp -- measures how many cores are idle.
#pragma once

#include <chrono>
#include <vector>

namespace capstan {

/// Measures the cores that this process may run on. Used by one thread.
class IdleCores {
 public:
  IdleCores();

  /// Average number of idle cores over the last interval of at least 0.1 s. Returns 0 during the first
  /// interval, and if the system does not report idle times.
  double count();

 private:
  /// Idle time since boot, in seconds, of each core that this process may run on.
  std::vector<double> idle_seconds() const;

  std::chrono::steady_clock::time_point measured_at_;
  std::vector<double> previous_;
  double idle_ = 0;
};

}  // namespace capstan

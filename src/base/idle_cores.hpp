// idle_cores.hpp -- is there a core that nobody uses?
#pragma once

#include <chrono>
#include <vector>

namespace capstan {

/// Of those that this process may run on. One thread.
class IdleCores {
 public:
  IdleCores();

  /// How many, on average over the last time that was long enough to tell: 0.1 s. 0 at first, and where the
  /// system does not say.
  double count();

 private:
  /// Seconds that each core has been idle since the system was started, of those that may be used.
  std::vector<double> idle_seconds() const;

  std::chrono::steady_clock::time_point looked_;
  std::vector<double> then_;
  double idle_ = 0;
};

}  // namespace capstan

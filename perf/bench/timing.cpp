// timing.cpp -- barrier of the workers by a counter on a ps.
#include "perf/bench/timing.hpp"

#include <thread>

namespace capstan::perf {

void StartBarrier::wait() const {
  if (workers_ == 1) return;
  const std::int64_t arrived = counter_.fetch_add(1);
  const std::int64_t all = (arrived / workers_ + 1) * workers_;
  while (counter_.value() < all) std::this_thread::yield();
}

}  // namespace capstan::perf

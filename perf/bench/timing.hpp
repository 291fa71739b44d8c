// timing.hpp -- times work and its bound alternately, so that drift of the machine's speed affects both.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "capstan/variable.hpp"

namespace capstan::perf {

/// Samples of one worker, in seconds. Serialized to the coordinator.
struct Timings {
  bool verified = false;
  std::vector<double> measured;
  std::vector<double> bound;  // empty if there is none
  std::string bound_name;
};

template <class Work>
double seconds_of(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Barrier at which the workers start each sample together. Returns at once for a single worker.
class StartBarrier {
 public:
  StartBarrier(const Counter& counter, std::int64_t workers) : counter_(counter), workers_(workers) {}
  void wait() const;

 private:
  Counter counter_;
  std::int64_t workers_;
};

/// Barrier of a benchmark in a single process.
struct NoBarrier {
  void wait() const {}
};

/// Takes `samples` samples of `work` and of `bound`, after `warmup` samples that are discarded. `prepare()`
/// runs before each sample, untimed. The order of work and bound alternates.
template <class Start, class Prepare, class Work, class Bound>
void take_turns(int warmup, int samples, const Start& barrier, bool with_bound, Prepare&& prepare,
                Work&& work, Bound&& bound, Timings& out) {
  const auto time = [&](auto& work, std::vector<double>& into, int sample) {
    prepare();
    barrier.wait();
    const double seconds = seconds_of(work);
    if (sample >= 0) into.push_back(seconds);
  };
  for (int sample = -warmup; sample < samples; ++sample) {
    const bool work_first = sample % 2 == 0;
    if (work_first) time(work, out.measured, sample);
    if (with_bound) time(bound, out.bound, sample);
    if (!work_first) time(work, out.measured, sample);
  }
}

}  // namespace capstan::perf

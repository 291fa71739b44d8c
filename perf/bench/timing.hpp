// timing.hpp -- figure and bound in turn, so that a machine whose speed drifts does so for both.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "capstan/variable.hpp"

namespace capstan::perf {

/// What one worker measured: seconds of each sample. Travels to the coordinator.
struct Timings {
  bool verified = false;
  std::vector<double> figure;
  std::vector<double> bound;  // empty when there is none
  std::string bound_name;
};

template <class Work>
double seconds_of(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Lets the workers of a benchmark start each sample together. Alone it costs nothing.
class Together {
 public:
  Together(const Counter& counter, std::int64_t workers) : counter_(counter), workers_(workers) {}
  void wait() const;

 private:
  Counter counter_;
  std::int64_t workers_;
};

/// For one that starts alone.
struct Alone {
  void wait() const {}
};

/// `samples` of each, after `warmup` that do not count. `prepare()` runs before each timing, outside of the
/// clock; figure and bound swap places from one sample to the next.
template <class Start, class Prepare, class Figure, class Bound>
void take_turns(int warmup, int samples, const Start& together, bool with_bound, Prepare&& prepare,
                Figure&& figure, Bound&& bound, Timings& out) {
  const auto time = [&](auto& work, std::vector<double>& into, int sample) {
    prepare();
    together.wait();
    const double seconds = seconds_of(work);
    if (sample >= 0) into.push_back(seconds);
  };
  for (int sample = -warmup; sample < samples; ++sample) {
    const bool figure_first = sample % 2 == 0;
    if (figure_first) time(figure, out.figure, sample);
    if (with_bound) time(bound, out.bound, sample);
    if (!figure_first) time(figure, out.figure, sample);
  }
}

}  // namespace capstan::perf

// statistics.hpp -- median and 99th percentile of samples; never the mean.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

namespace capstan::perf {

/// Median; of an even number of samples, the mean of the two in the middle. Throws std::invalid_argument
/// without samples.
inline double median(std::vector<double> samples) {
  if (samples.empty()) throw std::invalid_argument("cannot compute a median of 0 samples");
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  if (samples.size() % 2 == 1) return *middle;
  return (*std::max_element(samples.begin(), middle) + *middle) / 2;
}

/// Smallest sample that 99 % of all samples do not exceed (nearest rank). Throws std::invalid_argument
/// without samples.
inline double p99(std::vector<double> samples) {
  if (samples.empty()) throw std::invalid_argument("cannot compute a percentile of 0 samples");
  const auto rank = static_cast<std::ptrdiff_t>(std::ceil(0.99 * static_cast<double>(samples.size())));
  const auto at = samples.begin() + std::max<std::ptrdiff_t>(rank - 1, 0);
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

/// Element-wise maximum: an iteration takes as long as on the slowest rank. `ranks` holds each rank's samples
/// of the same iterations.
inline std::vector<double> slowest(std::span<const std::vector<double>> ranks) {
  std::vector<double> out;
  for (const std::vector<double>& samples : ranks) {
    if (out.empty()) out.assign(samples.size(), 0);
    if (samples.size() != out.size())
      throw std::invalid_argument("the ranks have different numbers of samples");
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::max(out[i], samples[i]);
  }
  return out;
}

}  // namespace capstan::perf

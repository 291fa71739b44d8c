// sampler.cpp -- see sampler.hpp.
#include "train/word2vec/sampler.hpp"

#include <cmath>
#include <numeric>

#include "base/assert.hpp"

namespace capstan::train::word2vec {
namespace {

constexpr double kPower = 0.75;

}  // namespace

AliasSampler::AliasSampler(std::span<const double> weights) : slots_(weights.size()) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  CAPSTAN_ASSERT(sum > 0);
  std::vector<double> left(weights.size());  // probability that each row has still to get, in slots
  std::vector<std::int32_t> small, large;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left[i] = weights[i] * static_cast<double>(weights.size()) / sum;
    (left[i] < 1 ? small : large).push_back(static_cast<std::int32_t>(i));
  }
  const auto set = [&](std::int32_t slot, double own, std::int32_t alias) {
    slots_[static_cast<std::size_t>(slot)] = {static_cast<std::uint32_t>(own * 0x1p32), alias};
  };
  while (!small.empty() && !large.empty()) {
    const std::int32_t slot = small.back(), alias = large.back();
    small.pop_back();
    const double own = left[static_cast<std::size_t>(slot)];
    set(slot, own, alias);
    double& rest = left[static_cast<std::size_t>(alias)];
    rest -= 1 - own;
    if (rest < 1) {
      large.pop_back();
      small.push_back(alias);
    }
  }
  // Only rounding errors distinguish these from 1. Their alias is the row itself.
  for (const auto* rest : {&small, &large}) {
    for (const std::int32_t slot : *rest) set(slot, 0, slot);
  }
}

AliasSampler negative_sampler(std::span<const std::int64_t> counts) {
  std::vector<double> weights;
  weights.reserve(counts.size());
  for (const std::int64_t count : counts) weights.push_back(std::pow(static_cast<double>(count), kPower));
  return AliasSampler(weights);
}

}  // namespace capstan::train::word2vec

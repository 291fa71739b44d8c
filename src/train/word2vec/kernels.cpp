// kernels.cpp -- see kernels.hpp. The first part is compiled once for each instruction set.
#include "train/word2vec/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "capstan/buffer.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/word2vec/kernels.cpp"
#include <hwy/foreach_target.h>  // must precede the two below to compile this file once per target

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace capstan::train::word2vec::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Vectors = hn::CappedTag<float, kRowAlignment>;

/// Products of rows beyond this are treated as this: the sigmoid is 0 or 1 in float.
constexpr float kLargestScore = 20;

HWY_INLINE float Dot(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, std::size_t size) {
  const Vectors d;
  const std::size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 2 * lanes <= size; i += 2 * lanes) {
    sum0 = hn::MulAdd(hn::Load(d, a + i), hn::Load(d, b + i), sum0);
    sum1 = hn::MulAdd(hn::Load(d, a + i + lanes), hn::Load(d, b + i + lanes), sum1);
  }
  if (i < size) sum0 = hn::MulAdd(hn::Load(d, a + i), hn::Load(d, b + i), sum0);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
}

/// weights[t] = -rate * (d loss / d score): rate * (1 - sigmoid) of the first score, -rate * sigmoid of the
/// others. `scores` is padded to full vectors.
HWY_INLINE void Weigh(const float* scores, std::size_t count, float rate, float* weights) {
  const Vectors d;
  const auto one = hn::Set(d, 1.0F), limit = hn::Set(d, kLargestScore);
  for (std::size_t t = 0; t < count; t += hn::Lanes(d)) {
    const auto score = hn::Max(hn::Neg(limit), hn::Min(limit, hn::Load(d, scores + t)));
    const auto sigmoid = hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(score))));
    hn::Store(hn::Mul(hn::Set(d, -rate), sigmoid), d, weights + t);
  }
  weights[0] += rate;
}

SampledLoss TrainPairs(PairList list, float* HWY_RESTRICT words, float* HWY_RESTRICT contexts,
                       std::size_t stride, float rate, std::size_t most_targets) {
  const Vectors d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t padded = (most_targets + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  Buffer<float> buffer(2 * padded);
  std::ranges::fill(buffer, 0.0F);
  float* const scores = buffer.data();
  float* const weights = scores + padded;
  std::vector<float*> rows(most_targets);
  SampledLoss loss;
  const std::uint32_t* target = list.targets.data();
  const std::uint32_t* const end = target + list.targets.size();
  for (std::size_t p = 0; p < list.pairs.size(); ++p) {
    const std::size_t count = list.pairs[p].targets;
    float* const word = words + list.pairs[p].word * stride;
    for (std::size_t t = 0; t < count; ++t) rows[t] = contexts + target[t] * stride;
    target += count;
    // The negatives of the next pair are rarely in a cache.
    for (const std::uint32_t* next = target + 1; next < std::min(target + count, end); ++next) {
      for (std::size_t i = 0; i < stride; i += kRowAlignment) hwy::Prefetch(contexts + *next * stride + i);
    }
    for (std::size_t t = 0; t < count; ++t) scores[t] = Dot(word, rows[t], stride);
    if (p % kLossEvery == 0) {
      for (std::size_t t = 0; t < count; ++t)
        loss.sum += std::log1p(std::exp(static_cast<double>(t == 0 ? -scores[t] : scores[t])));
      ++loss.pairs;
    }
    Weigh(scores, count, rate, weights);
    for (std::size_t i = 0; i < stride; i += lanes) {
      const auto from = hn::Load(d, word + i);
      auto sum = from;
      for (std::size_t t = 0; t < count; ++t) {
        const auto weight = hn::Set(d, weights[t]);
        const auto row = hn::Load(d, rows[t] + i);
        sum = hn::MulAdd(weight, row, sum);
        hn::Store(hn::MulAdd(weight, from, row), d, rows[t] + i);
      }
      hn::Store(sum, d, word + i);
    }
  }
  return loss;
}

}  // namespace capstan::train::word2vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::train::word2vec {
namespace {

HWY_EXPORT(TrainPairs);

}  // namespace

SampledLoss train_pairs(PairList list, float* words, float* contexts, std::size_t stride, float rate) {
  std::size_t most = 1;
  for (const Pair& pair : list.pairs) most = std::max<std::size_t>(most, pair.targets);
  return HWY_DYNAMIC_DISPATCH(TrainPairs)(list, words, contexts, stride, rate, most);
}

}  // namespace capstan::train::word2vec
#endif  // HWY_ONCE

// step.cpp -- see step.hpp.
#include "train/word2vec/step.hpp"

#include <algorithm>
#include <cmath>

namespace capstan::train::word2vec {
namespace {

/// Assumed mean second derivative of the loss by a row, in the direction of its movement. Rows of words have
/// about 0.045, and those of contexts 0.3 to 0.5. The measured values of each block gave a lower loss, but a
/// lower rank correlation with MEN-3000. docs/training.md has the choice.
constexpr double kCurvature = 0.05;

}  // namespace

float damping(float rate, std::uint32_t updates, int workers) {
  if (workers <= 1 || updates == 0) return 1;
  const double exponent = static_cast<double>(rate) * kCurvature * static_cast<double>(updates);
  if (exponent == 0) return 1;  // a rate that is too small for a float
  return static_cast<float>(std::expm1(-workers * exponent) / (workers * std::expm1(-exponent)));
}

Step::Step(std::size_t dim) : dim_(dim), stride_((dim + kRowAlignment - 1) / kRowAlignment * kRowAlignment) {}

void Step::resize(std::size_t words, std::size_t contexts) {
  words_.rows.resize(words * dim_);
  words_.padded.resize(words * stride_);
  contexts_.rows.resize(contexts * dim_);
  contexts_.padded.resize(contexts * stride_);
  words_.updates.assign(words, 0);
  contexts_.updates.assign(contexts, 0);
}

SampledLoss Step::train(PairList pairs, float rate, int workers) {
  pad(words_);
  pad(contexts_);
  const SampledLoss loss = train_pairs(pairs, words_.padded.data(), contexts_.padded.data(), stride_, rate);
  for (const Pair& pair : pairs.pairs) words_.updates[pair.word] += pair.targets;
  for (const std::uint32_t target : pairs.targets) ++contexts_.updates[target];
  subtract(words_, rate, workers);
  subtract(contexts_, rate, workers);
  return loss;
}

void Step::pad(Table& table) const {
  const float* from = table.rows.data();
  float* to = table.padded.data();
  for (std::size_t left = table.rows.size(); left > 0; left -= dim_, from += dim_, to += stride_) {
    std::fill(std::copy_n(from, dim_, to), to + stride_, 0.0F);
  }
}

void Step::subtract(Table& table, float rate, int workers) const {
  float* before = table.rows.data();
  const float* after = table.padded.data();
  for (const std::uint32_t updates : table.updates) {
    const float factor = damping(rate, updates, workers);
    for (std::size_t i = 0; i < dim_; ++i) before[i] = factor * (before[i] - after[i]);
    before += dim_;
    after += stride_;
  }
}

}  // namespace capstan::train::word2vec

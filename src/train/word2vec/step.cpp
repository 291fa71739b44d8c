// step.cpp -- see step.hpp.
#include "train/word2vec/step.hpp"

#include <algorithm>

namespace capstan::train::word2vec {

Step::Step(std::size_t dim) : dim_(dim), stride_((dim + kRowAlignment - 1) / kRowAlignment * kRowAlignment) {}

void Step::resize(std::size_t words, std::size_t contexts) {
  words_.rows.resize(words * dim_);
  words_.padded.resize(words * stride_);
  contexts_.rows.resize(contexts * dim_);
  contexts_.padded.resize(contexts * stride_);
}

SampledLoss Step::train(PairList pairs, float rate) {
  pad(words_);
  pad(contexts_);
  const SampledLoss loss = train_pairs(pairs, words_.padded.data(), contexts_.padded.data(), stride_, rate);
  subtract(words_);
  subtract(contexts_);
  return loss;
}

void Step::pad(Table& table) const {
  const float* from = table.rows.data();
  float* to = table.padded.data();
  for (std::size_t left = table.rows.size(); left > 0; left -= dim_, from += dim_, to += stride_) {
    std::fill(std::copy_n(from, dim_, to), to + stride_, 0.0F);
  }
}

void Step::subtract(Table& table) const {
  float* before = table.rows.data();
  const float* after = table.padded.data();
  for (std::size_t left = table.rows.size(); left > 0; left -= dim_, before += dim_, after += stride_) {
    for (std::size_t i = 0; i < dim_; ++i) before[i] -= after[i];
  }
}

}  // namespace capstan::train::word2vec

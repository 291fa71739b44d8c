// kernels.hpp -- stochastic gradient descent on pairs of words, compiled for several instruction sets.
//
// The best one is selected at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capstan::train::word2vec {

/// A row of a word, and the rows of its targets in the table of contexts: the true one first, then negatives.
struct Pair {
  std::uint32_t word = 0;
  std::uint32_t targets = 0;  // number of them; the targets of all pairs are stored one after another
};

struct PairList {
  std::span<const Pair> pairs;
  std::span<const std::uint32_t> targets;
};

/// Sum of the losses of every kLossEvery-th pair, before its step. Their logarithms take longer than the
/// step.
struct SampledLoss {
  double sum = 0;
  std::int64_t pairs = 0;
};
inline constexpr std::size_t kLossEvery = 16;

/// Rows begin at multiples of this number of floats: a cache line.
inline constexpr std::size_t kRowAlignment = 16;

/// For each pair, subtracts `rate` times the gradient of its loss from its rows: -log(sigmoid(w . c)) of the
/// true target c, plus -log(sigmoid(-w . c)) of the negatives. The gradients of a pair belong to the values
/// before its step; only a target that occurs twice has changed when the word gets its second part. `words`
/// and `contexts` are rows of `stride` floats, aligned to a cache line. REQUIRES: `stride` is a multiple of
/// kRowAlignment.
SampledLoss train_pairs(PairList list, float* words, float* contexts, std::size_t stride, float rate);

}  // namespace capstan::train::word2vec

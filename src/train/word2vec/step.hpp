// step.hpp -- trains a block on copies of its rows, and returns the differences as gradients.
//
//   step.resize(plan.word_rows().size(), plan.context_rows().size());
//   // fill step.word_rows() and step.context_rows() with a lookup
//   step.train(plan.pairs(), rate, workers);
//   // push both: they are now gradients of SGD with a rate of 1
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/kge/aligned.hpp"
#include "train/word2vec/kernels.hpp"

namespace capstan::train::word2vec {

/// The factor of a row's difference, if `workers` workers train blocks on the same values and each changes
/// the row `updates` times. An update is assumed to remove a share a = rate * curvature of the row's distance
/// from its optimum. Blocks one after another would remove 1 - (1 - a)^(workers * updates) of it. The sum of
/// the differences would remove workers times what a block removes, so that the rows of frequent words would
/// move past their optimum, farther each time. The factor makes both equal: 1 for rows that change little, 1
/// / workers, the mean of the differences, for rows that a block moves to their optimum.
float damping(float rate, std::uint32_t updates, int workers);

/// Keeps its buffers between blocks. Used by one thread at a time.
class Step {
 public:
  explicit Step(std::size_t dim);

  /// Sets the numbers of rows. Their values are undefined.
  void resize(std::size_t words, std::size_t contexts);
  /// The rows, `dim` floats each.
  std::span<float> word_rows() noexcept { return words_.rows.span(); }
  std::span<float> context_rows() noexcept { return contexts_.rows.span(); }
  /// Trains the pairs, one after another, and replaces each row by its value before minus its value after,
  /// times damping(). `workers`: the number of workers that train blocks at the same time.
  SampledLoss train(PairList pairs, float rate, int workers);

 private:
  struct Table {
    kge::AlignedFloats rows;             // `dim` floats each
    kge::AlignedFloats padded;           // stride_ floats each, for the kernel
    std::vector<std::uint32_t> updates;  // of each row, by the pairs
  };
  void pad(Table& table) const;
  void subtract(Table& table, float rate, int workers) const;

  std::size_t dim_;
  std::size_t stride_;
  Table words_, contexts_;
};

}  // namespace capstan::train::word2vec

// step.hpp -- trains a block on copies of its rows, and returns the differences as gradients.
//
//   step.resize(plan.word_rows().size(), plan.context_rows().size());
//   // fill step.word_rows() and step.context_rows() with a lookup
//   step.train(plan.pairs(), rate);
//   // push both: they are now gradients of SGD with a rate of 1
#pragma once

#include <cstddef>
#include <span>

#include "train/kge/aligned.hpp"
#include "train/word2vec/kernels.hpp"

namespace capstan::train::word2vec {

/// Keeps its buffers between blocks. Used by one thread at a time.
class Step {
 public:
  explicit Step(std::size_t dim);

  /// Sets the numbers of rows. Their values are undefined.
  void resize(std::size_t words, std::size_t contexts);
  /// The rows, `dim` floats each.
  std::span<float> word_rows() noexcept { return words_.rows.span(); }
  std::span<float> context_rows() noexcept { return contexts_.rows.span(); }
  /// Trains the pairs, one after another, and replaces each row by its value before minus its value after.
  SampledLoss train(PairList pairs, float rate);

 private:
  struct Table {
    kge::AlignedFloats rows;    // `dim` floats each
    kge::AlignedFloats padded;  // stride_ floats each, for the kernel
  };
  void pad(Table& table) const;
  void subtract(Table& table) const;

  std::size_t dim_;
  std::size_t stride_;
  Table words_, contexts_;
};

}  // namespace capstan::train::word2vec

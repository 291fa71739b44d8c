// factorization_machine.hpp -- logistic regression and the factorization machine (Rendle, ICDM 2010): logits
// and gradients.
//
//   logit(x) = bias + sum_i w_i x_i + sum_{i<j} <v_i, v_j> x_i x_j
//
// over the features i of the example; without factors it is logistic regression. The double sum is half
// of the sum over factors of (sum_i v_if x_i)^2 - sum_i (v_if x_i)^2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/sparse/examples.hpp"
#include "train/sparse/l2_penalty.hpp"

namespace capstan::train {

struct FmOptions {
  std::int64_t factors = 0;
  bool bias = true;
};

/// Values or gradients of a batch's rows, in the order of its ids.
struct FmRows {
  std::vector<float> weights = {};  // one per id, then the bias if there is one
  std::vector<float> factors = {};  // options.factors per id
};

struct FmLoss {
  double log_loss = 0;  // sum over the examples
  double penalty = 0;   // sum of the examples' parts of the penalty
};

class FactorizationMachine {
 public:
  explicit FactorizationMachine(const FmOptions& options) : options_(options) {}
  const FmOptions& options() const noexcept { return options_; }

  /// Resizes `rows` for the batch.
  void resize(const SparseExamples& batch, FmRows& rows) const;
  /// Computes one logit per example.
  void logits(const SparseExamples& batch, const FmRows& rows, std::vector<double>& out);
  /// Computes the gradient of scale * (sum of log-losses + penalties). REQUIRES if l2.any(): the batch has
  /// rarities. Each occurrence of a feature penalizes its rows, weighted by its rarity; over all training
  /// examples that is l2 once per example.
  FmLoss gradients(const SparseExamples& batch, const FmRows& rows, const L2Penalty& l2, double scale,
                   FmRows& gradients);

 private:
  double logit(const SparseExamples& batch, const FmRows& rows, std::size_t example);
  /// Adds the penalties' gradient, once per row; returns the sum of the penalties.
  double penalize(const SparseExamples& batch, const FmRows& rows, const L2Penalty& l2, double scale);

  FmOptions options_;
  std::vector<double> sums_;  // by factor, of the current example: sum_i v_if x_i
  std::vector<double> weight_gradients_, factor_gradients_;
};

}  // namespace capstan::train

// machine.hpp -- logistic regression and the factorization machine (Rendle, ICDM 2010): logits and gradients.
//
//   logit(x) = bias + sum_i w_i x_i + sum_{i<j} <v_i, v_j> x_i x_j
//
// over the features i that the example has; without factors it is logistic regression. The double sum is half
// of the sum over factors of (sum_i v_if x_i)^2 - sum_i (v_if x_i)^2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/sparse/examples.hpp"

namespace capstan::train {

struct MachineOptions {
  std::int64_t factors = 0;
  bool bias = true;
  double l2 = 0;  // times 1/2 (|w|^2 + |v|^2); the bias is not penalised
};

/// The values of a batch's rows, in the order of its ids, and gradients beside them.
struct MachineRows {
  std::vector<float> weights = {};  // one an id, and behind them the bias if there is one
  std::vector<float> factors = {};  // options.factors an id
};

struct MachineLoss {
  double log_loss = 0;  // sum over the examples
  double penalty = 0;   // the same of their parts of the penalty
};

class Machine {
 public:
  explicit Machine(const MachineOptions& options) : options_(options) {}
  const MachineOptions& options() const noexcept { return options_; }

  /// Makes room for a batch's rows.
  void resize(const SparseExamples& batch, MachineRows& rows) const;
  /// One an example.
  void logits(const SparseExamples& batch, const MachineRows& rows, std::vector<double>& out);
  /// The gradient of scale * (sum of log-losses + penalties). With l2, the batch has rarities: each time that
  /// a feature occurs its row is penalised by its rarity, which over all training examples is l2 / 2 |row|^2
  /// for each example.
  MachineLoss gradients(const SparseExamples& batch, const MachineRows& rows, double scale,
                        MachineRows& gradients);

 private:
  double logit(const SparseExamples& batch, const MachineRows& rows, std::size_t example);

  MachineOptions options_;
  std::vector<double> sums_;  // by factor, of the example at hand: sum_i v_if x_i
  std::vector<double> weight_gradients_, factor_gradients_;
};

}  // namespace capstan::train

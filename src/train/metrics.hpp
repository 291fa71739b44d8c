// metrics.hpp -- quality of a classifier: mean log-loss, accuracy, area under the ROC curve.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace capstan::train {

/// Sums over examples, from which the metrics follow. Each worker fills one for its examples; merged, they do
/// not depend on the number of workers or the batch size.
struct Scores {
  std::int64_t examples = 0;
  std::int64_t correct = 0;
  double log_loss_sum = 0;
  /// Logits of the examples of each label; two classes only.
  std::vector<double> positive = {};
  std::vector<double> negative = {};

  /// Adds an example of two classes. A logit above 0 predicts label 1.
  void add(double logit, bool is_positive);
  /// Adds an example of several classes. The first of the largest logits is the prediction.
  void add(std::span<const float> logits, std::size_t answer);
  void merge(const Scores& other);

  double log_loss() const;
  double accuracy() const;
  /// NaN unless both labels occur.
  double auc() const;
};

/// Probability that a positive example scores above a negative one, with ties counted half (Mann-Whitney).
/// Exact: no sampling, no bins. NaN if either is empty or contains a NaN.
double auc(std::vector<double> positive, std::vector<double> negative);

}  // namespace capstan::train

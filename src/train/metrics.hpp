// metrics.hpp -- how good a classifier is: mean log-loss, accuracy, area under the ROC curve.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace capstan::train {

/// What some examples add to the metrics. A worker makes one for its examples; merged ones are those of all
/// of them, so that any number of workers and sizes of batches gives the same.
struct Scores {
  std::int64_t examples = 0;
  std::int64_t correct = 0;
  double log_loss_sum = 0;
  /// Of two classes: the logits of either label.
  std::vector<double> positive = {};
  std::vector<double> negative = {};

  /// An example of two classes. A logit above 0 says that the label is 1.
  void add(double logit, bool is_positive);
  /// An example of several classes; the largest logit is the answer, the first of equals.
  void add(std::span<const float> logits, std::size_t answer);
  void merge(const Scores& other);

  double log_loss() const;
  double accuracy() const;
  /// NaN without an example of either label.
  double auc() const;
};

/// How likely a positive example is above a negative one, those with the same score counted half
/// (Mann-Whitney). Exact: no sampling, no bins. NaN where one of both is empty, or for a NaN among them.
double auc(std::vector<double> positive, std::vector<double> negative);

}  // namespace capstan::train

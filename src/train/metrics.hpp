// metrics.hpp -- sums over examples that determine the quality of a model: for classifiers mean log-loss,
// accuracy and the area under the ROC curve.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "train/evaluation.hpp"

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
  /// Sums of models that are no classifiers, by name.
  std::map<std::string, double> sums = {};

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

/// The metrics of a classifier: logloss, auc if there are two classes, accuracy.
Evaluation classification(const Scores& scores);

/// Probability that a positive example scores above a negative one, with ties counted half (Mann-Whitney).
/// Exact: no sampling, no bins. NaN if either is empty or contains a NaN.
double auc(std::vector<double> positive, std::vector<double> negative);

}  // namespace capstan::train

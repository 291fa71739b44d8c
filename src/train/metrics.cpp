// metrics.cpp -- sums over examples, and the AUC from two sorted lists.
#include "train/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "train/log_loss.hpp"

namespace capstan::train {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double mean(double sum, std::int64_t count) { return count > 0 ? sum / static_cast<double>(count) : kNone; }

bool has_nan(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double x) { return std::isnan(x); });
}

}  // namespace

void Scores::add(double logit, bool is_positive) {
  ++examples;
  correct += (logit > 0) == is_positive ? 1 : 0;
  log_loss_sum += train::log_loss(logit, is_positive);
  (is_positive ? positive : negative).push_back(logit);
}

void Scores::add(std::span<const float> logits, std::size_t answer) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  const double base = static_cast<double>(*largest);
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - base);
  ++examples;
  correct += static_cast<std::size_t>(largest - logits.begin()) == answer ? 1 : 0;
  log_loss_sum += std::log(total) - (static_cast<double>(logits[answer]) - base);
}

void Scores::merge(const Scores& other) {
  examples += other.examples;
  correct += other.correct;
  log_loss_sum += other.log_loss_sum;
  positive.insert(positive.end(), other.positive.begin(), other.positive.end());
  negative.insert(negative.end(), other.negative.begin(), other.negative.end());
  for (const auto& [name, value] : other.sums) sums[name] += value;
}

double Scores::log_loss() const { return mean(log_loss_sum, examples); }
double Scores::accuracy() const { return mean(static_cast<double>(correct), examples); }
double Scores::auc() const { return train::auc(positive, negative); }

double auc(std::vector<double> positive, std::vector<double> negative) {
  if (positive.empty() || negative.empty() || has_nan(positive) || has_nan(negative)) return kNone;
  std::sort(positive.begin(), positive.end());
  std::sort(negative.begin(), negative.end());
  std::uint64_t twice = 0;  // an integer: exact in any order of summation
  std::size_t below = 0, not_above = 0;
  for (const double score : positive) {
    while (below < negative.size() && negative[below] < score) ++below;
    not_above = std::max(not_above, below);
    while (not_above < negative.size() && negative[not_above] <= score) ++not_above;
    twice += below + not_above;
  }
  const double pairs = static_cast<double>(positive.size()) * static_cast<double>(negative.size());
  return static_cast<double>(twice) / 2 / pairs;
}

Evaluation classification(const Scores& scores) {
  Evaluation found{{{"logloss", scores.log_loss(), "", 6}}, scores.examples};
  if (const double area = scores.auc(); !std::isnan(area)) found.metrics.push_back({"auc", area, "AUC"});
  found.metrics.push_back({"accuracy", scores.accuracy()});
  return found;
}

}  // namespace capstan::train

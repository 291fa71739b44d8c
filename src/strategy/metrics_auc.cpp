// metrics_auc.cpp -- the area under a curve, from counts of examples between thresholds.
//
// The state has, for each interval between two thresholds, the weights of the positive and of the negative
// examples whose predictions lie in it; sums of these are the four confusion counts at each threshold. The
// formulas are those of tf.keras.metrics.AUC.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capstan/error.hpp"
#include "capstan/metrics.hpp"

namespace capstan::metrics {
namespace {

constexpr double kBeyond =
    1e-7;  // how far the first and the last threshold lie outside of [0, 1], as in Keras

std::vector<double> thresholds_of(const std::string& name, const AUCOptions& options) {
  std::vector<double> inner = options.thresholds;
  if (inner.empty()) {
    if (options.num_thresholds < 2) {
      throw Error(Code::invalid_argument,
                  fmt::format("metric \"{}\": num_thresholds is {}, expected 2 or more", name,
                              options.num_thresholds));
    }
    const auto last = static_cast<double>(options.num_thresholds - 1);
    for (std::int64_t i = 1; i < options.num_thresholds - 1; ++i) {
      inner.push_back(static_cast<double>(i) / last);
    }
  }
  for (const double threshold : inner) {
    if (threshold >= 0 && threshold <= 1) continue;
    throw Error(Code::invalid_argument,
                fmt::format("metric \"{}\": a threshold is {}, expected 0 to 1", name, threshold));
  }
  std::sort(inner.begin(), inner.end());
  std::vector<double> all{-kBeyond};
  all.insert(all.end(), inner.begin(), inner.end());
  all.push_back(1 + kBeyond);
  return all;
}

double ratio(double a, double b) { return b == 0 ? 0 : a / b; }

double area(const std::vector<double>& x, const std::vector<double>& y, SummationMethod method) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    double height = (y[i] + y[i + 1]) / 2;
    if (method == SummationMethod::minoring) height = std::min(y[i], y[i + 1]);
    if (method == SummationMethod::majoring) height = std::max(y[i], y[i + 1]);
    sum += (x[i] - x[i + 1]) * height;
  }
  return sum;
}

/// Integrates precision over recall. Between two thresholds, the true positives are linear in the number of
/// predicted positives (Davis and Goadrich).
double interpolated_pr_area(const ConfusionCounts& at) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < at.true_positives.size(); ++i) {
    const double tp = at.true_positives[i], next_tp = at.true_positives[i + 1];
    const double p = tp + at.false_positives[i], next_p = next_tp + at.false_positives[i + 1];
    const double slope = ratio(tp - next_tp, std::max(p - next_p, 0.0));
    const double intercept = next_tp - slope * next_p;
    const double safe_ratio = p > 0 && next_p > 0 ? p / next_p : 1;
    sum += ratio(slope * (tp - next_tp + intercept * std::log(safe_ratio)),
                 std::max(next_tp + at.false_negatives[i + 1], 0.0));
  }
  return sum;
}

}  // namespace

AUC::AUC(std::string name, const AUCOptions& options) : AUC(name, options, thresholds_of(name, options)) {}

AUC::AUC(std::string name, AUCOptions options, std::vector<double> thresholds)
    : Metric(std::move(name), 2 * (static_cast<std::int64_t>(thresholds.size()) - 1)),
      options_(std::move(options)),
      thresholds_(std::move(thresholds)) {}

AUC::AUC(Variable<double> state, AUCOptions options)
    : Metric(std::move(state)), options_(std::move(options)), thresholds_(thresholds_of(name(), options_)) {}

void AUC::update_state(const Values& y_true, const Values& y_pred, const Values& sample_weight) const {
  const auto check_size = [&](const char* what, const Values& values) {
    if (values.size() == y_pred.size()) return;
    throw Error(Code::invalid_argument,
                fmt::format("update of metric \"{}\": {} has {} numbers, expected {}, "
                            "as many as y_pred",
                            name(), what, values.size(), y_pred.size()));
  };
  check_size("y_true", y_true);
  if (sample_weight.size() != 1) check_size("sample_weight", sample_weight);
  const std::size_t intervals = thresholds_.size() - 1;
  std::vector<double> amounts(2 * intervals);
  for (std::size_t i = 0; i < y_pred.size(); ++i) {
    const double prediction = y_pred.numbers()[i];
    if (!(prediction >= 0 && prediction <= 1)) {
      throw Error(Code::invalid_argument,
                  fmt::format("update of metric \"{}\": prediction {} is {}, expected 0 to 1", name(), i,
                              prediction));
    }
    // `above` is neither begin() nor end(): the first threshold is below 0, and the last one is above 1.
    const auto above = std::lower_bound(thresholds_.begin(), thresholds_.end(), prediction);
    const auto interval = static_cast<std::size_t>(above - thresholds_.begin()) - 1;
    const double weight = sample_weight.numbers()[sample_weight.size() == 1 ? 0 : i];
    amounts[interval + (y_true.numbers()[i] != 0 ? 0 : intervals)] += weight;
  }
  add(amounts);
}

ConfusionCounts AUC::confusion_counts() const {
  const std::vector<double> amounts = state();
  const std::size_t intervals = thresholds_.size() - 1;
  const auto count = [&](const double* weights, std::vector<double>& above, std::vector<double>& below) {
    above.resize(intervals + 1);
    below.resize(intervals + 1);
    for (std::size_t i = 0; i < intervals; ++i) below[i + 1] = below[i] + weights[i];
    for (std::size_t i = intervals; i > 0; --i) above[i - 1] = above[i] + weights[i - 1];
  };
  ConfusionCounts counts;
  count(amounts.data(), counts.true_positives, counts.false_negatives);
  count(amounts.data() + intervals, counts.false_positives, counts.true_negatives);
  return counts;
}

double AUC::result() const {
  const ConfusionCounts at = confusion_counts();
  const bool is_roc = options_.curve == Curve::roc;
  if (!is_roc && options_.summation_method == SummationMethod::interpolation) return interpolated_pr_area(at);
  std::vector<double> x, y;
  for (std::size_t i = 0; i < thresholds_.size(); ++i) {
    const double tp = at.true_positives[i], fp = at.false_positives[i];
    const double recall = ratio(tp, tp + at.false_negatives[i]);
    x.push_back(is_roc ? ratio(fp, fp + at.true_negatives[i]) : recall);
    y.push_back(is_roc ? recall : ratio(tp, tp + fp));
  }
  return area(x, y, options_.summation_method);
}

}  // namespace capstan::metrics

namespace capstan {

void Serializer<metrics::AUC>::write(Writer& out, const metrics::AUC& metric) {
  capstan::write(out, metric.variable());
  capstan::write(out, metric.options_);
}

metrics::AUC Serializer<metrics::AUC>::read(Reader& in) {
  auto state = capstan::read<Variable<double>>(in);
  return {std::move(state), capstan::read<metrics::AUCOptions>(in)};
}

}  // namespace capstan

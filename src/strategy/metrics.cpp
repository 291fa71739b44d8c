// metrics.cpp -- sums, means and Keras metrics that are means: each update is one dense push of amounts.
#include "capstan/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "capstan/error.hpp"

namespace capstan::metrics {
namespace {

/// Creates the state as one row, which no partitioner divides, so a consistent read sees complete updates.
Variable<double> make_state(std::string name, std::int64_t numbers) {
  return {std::move(name), Shape{1, numbers}, InitialValue<double>(),
          VariableOptions{.optimizer = optimizers::SGD{.learning_rate = 1},
                          .trainable = false,
                          .aggregation = VariableAggregation::sum,
                          .synchronization = VariableSynchronization::on_read,
                          .memory = ShardMemory::host}};
}

/// Calls sample(values, weight) with the values and the weight of each sample.
template <class F>
void for_each_sample(const Metric& metric, const Values& values, const Values& weight, const F& sample) {
  const std::span<const double> all = values.numbers();
  if (weight.size() == 1) {
    for (std::size_t i = 0; i < all.size(); ++i) sample(all.subspan(i, 1), weight.numbers()[0]);
    return;
  }
  const Shape &shape = values.shape(), &leading = weight.shape();
  if (leading.size() > shape.size() || !std::equal(leading.begin(), leading.end(), shape.begin())) {
    throw Error(
        Code::invalid_argument,
        fmt::format("update of metric \"{}\": sample_weight has shape {}, expected one number, or the "
                    "shape of the samples {} or of its leading axes",
                    metric.name(), to_string(leading), to_string(shape)));
  }
  const std::size_t size = weight.size() == 0 ? 0 : all.size() / weight.size();
  for (std::size_t i = 0; i < weight.size(); ++i) sample(all.subspan(i * size, size), weight.numbers()[i]);
}

double sum_of(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double mean_of(std::span<const double> values) {
  return values.empty() ? 0 : sum_of(values) / static_cast<double>(values.size());
}

/// Returns the common shape. Ignores a last axis of size 1 that only one of the two has.
Shape common_shape(const Metric& metric, const Values& y_true, const Values& y_pred) {
  const auto is_other_with_one = [](Shape shape, const Shape& other) {
    shape.push_back(1);
    return shape == other;
  };
  const Shape &a = y_true.shape(), &b = y_pred.shape();
  if (a == b || is_other_with_one(a, b)) return a;
  if (is_other_with_one(b, a)) return b;
  throw Error(
      Code::invalid_argument,
      fmt::format("update of metric \"{}\": y_true has shape {} and y_pred has shape {}, expected one "
                  "shape",
                  metric.name(), to_string(a), to_string(b)));
}

/// Returns f(label, prediction) for each pair; with two or more axes, averaged over the last one.
template <class F>
Values compare(const Metric& metric, const Values& y_true, const Values& y_pred, const F& f) {
  Shape shape = common_shape(metric, y_true, y_pred);
  std::vector<double> results(y_true.size());
  std::transform(y_true.numbers().begin(), y_true.numbers().end(), y_pred.numbers().begin(), results.begin(),
                 f);
  if (shape.size() < 2) return Array<double>(std::move(shape), std::move(results));
  const auto width = static_cast<std::size_t>(shape.back());
  shape.pop_back();
  Array<double> means(std::move(shape));
  for (std::size_t i = 0; i < means.values.size(); ++i) {
    means.values[i] = mean_of(std::span<const double>(results).subspan(i * width, width));
  }
  return means;
}

}  // namespace

Metric::Metric(std::string name, std::int64_t numbers) : state_(make_state(std::move(name), numbers)) {}

void Metric::reset_state() const { state_.assign(std::vector<double>(state_.width())); }

/// SGD subtracts a pushed gradient, times the learning rate of 1, so a push of the negated amounts adds them.
/// Unlike an assignment, a push needs no reply before the next step, and replicas push independently.
void Metric::add(std::span<const double> amounts) const {
  std::vector<double> gradient(amounts.begin(), amounts.end());
  for (double& amount : gradient) amount = -amount;
  state_.push_dense(gradient);
}

std::vector<double> Metric::state() const {
  state_.flush();
  std::vector<double> numbers(state_.width());
  state_.pull(0, std::span(numbers), ReadMode::consistent);
  return numbers;
}

void Sum::update_state(const Values& values, const Values& sample_weight) const {
  double total = 0;
  for_each_sample(*this, values, sample_weight,
                  [&](std::span<const double> sample, double weight) { total += weight * sum_of(sample); });
  add(std::vector<double>{total});
}

double Sum::result() const { return state()[0]; }

void Mean::update_state(const Values& values, const Values& sample_weight) const {
  double total = 0, count = 0;
  for_each_sample(*this, values, sample_weight, [&](std::span<const double> sample, double weight) {
    total += weight * mean_of(sample);
    count += weight;
  });
  add(std::vector<double>{total, count});
}

double Mean::result() const {
  const std::vector<double> total_and_count = state();
  return total_and_count[1] == 0 ? 0 : total_and_count[0] / total_and_count[1];
}

void Accuracy::update_state(const Values& y_true, const Values& y_pred, const Values& sample_weight) const {
  Mean::update_state(compare(*this, y_true, y_pred, [](double a, double b) { return a == b ? 1.0 : 0.0; }),
                     sample_weight);
}

void MeanSquaredError::update_state(const Values& y_true, const Values& y_pred,
                                    const Values& sample_weight) const {
  Mean::update_state(compare(*this, y_true, y_pred, [](double a, double b) { return (a - b) * (a - b); }),
                     sample_weight);
}

}  // namespace capstan::metrics

// metrics.hpp -- Keras-style metric objects: state on the ps, updated on workers, readable anywhere.
//
//   void evaluate(const Batch& batch, metrics::Accuracy accuracy) {
//     accuracy.update_state(batch.labels, predictions(batch));
//   }
//
//   metrics::Accuracy accuracy("accuracy");  // on the coordinator, in the strategy's scope
//   for (const Batch& batch : batches) coordinator.schedule<&evaluate>(batch, accuracy);
//   coordinator.join();
//   std::cout << accuracy.result();
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/serialize.hpp"
#include "capstan/variable.hpp"

namespace capstan::metrics {

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

/// The numbers of an update, as doubles: one number, a range of numbers, or an Array with its shape. Integers
/// beyond 2^53 are rounded.
class Values {
 public:
  template <Number T>
  Values(T number) {  // NOLINT(google-explicit-constructor)
    append(std::span(&number, 1));
  }
  Values(std::initializer_list<double> numbers)  // NOLINT(google-explicit-constructor)
      : shape_{static_cast<std::int64_t>(numbers.size())}, numbers_(numbers) {}
  template <std::ranges::forward_range R>
  requires std::ranges::sized_range<R> && Number<std::ranges::range_value_t<R>> Values(
      const R& numbers)  // NOLINT(google-explicit-constructor)
      : shape_{static_cast<std::int64_t>(std::ranges::size(numbers))} {
    append(numbers);
  }
  template <class T>
  Values(const Array<T>& array) : shape_(array.shape) {  // NOLINT(google-explicit-constructor)
    append(array.values);
  }

  /// Empty for a single number.
  const Shape& shape() const noexcept { return shape_; }
  const std::vector<double>& numbers() const noexcept { return numbers_; }
  std::size_t size() const noexcept { return numbers_.size(); }

 private:
  template <class R>
  void append(const R& numbers) {
    numbers_.reserve(std::ranges::size(numbers));
    for (const auto& number : numbers) {
      if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(number)>>) {
        numbers_.push_back(static_cast<double>(number));
      } else {
        numbers_.push_back(static_cast<double>(static_cast<float>(number)));
      }
    }
  }

  Shape shape_;
  std::vector<double> numbers_;
};

/// Base of all metrics. A handle: copies refer to the same metric.
///
/// A metric is created on the coordinator. In a strategy's scope its state is a variable on one ps, which has
/// the metric's name and is saved in checkpoints as all variables are; functions take the metric as an
/// argument. Outside of a scope the state stays in the coordinator's process.
///
/// An update is one push. It has been applied when its function is done. It is counted exactly once even if
/// the function runs again after its worker died, provided that it repeats the same updates in the same
/// order. Updates of all replicas count. After ClusterCoordinator::join, `result` covers the updates of all
/// functions. State is stored in double: counts are exact up to 2^53; sums are
/// accumulated in the order of arrival, so their rounding may differ between runs.
///
/// Used by the thread that runs the program or the function. All calls throw Error: unavailable naming a dead
/// ps, deadline_exceeded; updates also throw invalid_argument for sizes that do not match, and for NaN and
/// infinity under --nan-gradients=refuse, before anything is added.
class CAPSTAN_API Metric {
 public:
  const std::string& name() const { return state_.name(); }
  /// Restores the initial state. Updates in flight may be applied before or after the reset: call it after
  /// ClusterCoordinator::join.
  void reset_state() const;

  /// Internal: for Serializer, not for programs.
  const Variable<double>& variable() const noexcept { return state_; }

 protected:
  Metric(std::string name, std::int64_t state_size);
  explicit Metric(Variable<double> state) : state_(std::move(state)) {}

  void add(std::span<const double> amounts) const;
  /// Returns a consistent view of the state, which includes this rank's updates.
  std::vector<double> state() const;

 private:
  Variable<double> state_;
};

/// The weighted sum of all values.
class CAPSTAN_API Sum : public Metric {
 public:
  explicit Sum(std::string name) : Metric(std::move(name), 1) {}
  /// `sample_weight` is one number, or has the shape of `values` or of their leading axes.
  void update_state(const Values& values, const Values& sample_weight = 1) const;
  /// 0 before the first update.
  double result() const;

 private:
  friend struct Serializer<Sum>;
  explicit Sum(Variable<double> state) : Metric(std::move(state)) {}
};

/// The weighted mean of all values.
class CAPSTAN_API Mean : public Metric {
 public:
  explicit Mean(std::string name) : Metric(std::move(name), 2) {}
  /// `sample_weight` as in Sum. If it has the shape of the leading axes, values are averaged over the
  /// other axes first.
  void update_state(const Values& values, const Values& sample_weight = 1) const;
  /// 0 if the weights add up to 0.
  double result() const;

 protected:
  explicit Mean(Variable<double> state) : Metric(std::move(state)) {}

 private:
  friend struct Serializer<Mean>;
};

/// The weighted fraction of predictions equal to their labels. Arrays with several axes are averaged over
/// the last axis first.
class CAPSTAN_API Accuracy : public Mean {
 public:
  explicit Accuracy(std::string name) : Mean(std::move(name)) {}
  /// `y_true` and `y_pred` have equal shapes, except that one of them may lack a last axis of size 1;
  /// `sample_weight` is one number, or one per sample.
  void update_state(const Values& y_true, const Values& y_pred, const Values& sample_weight = 1) const;

 private:
  friend struct Serializer<Accuracy>;
  explicit Accuracy(Variable<double> state) : Mean(std::move(state)) {}
};

/// The weighted mean of (y_true - y_pred)^2. Arrays with several axes are averaged over the last axis
/// first.
class CAPSTAN_API MeanSquaredError : public Mean {
 public:
  explicit MeanSquaredError(std::string name) : Mean(std::move(name)) {}
  /// Shapes and `sample_weight` as in Accuracy.
  void update_state(const Values& y_true, const Values& y_pred, const Values& sample_weight = 1) const;

 private:
  friend struct Serializer<MeanSquaredError>;
  explicit MeanSquaredError(Variable<double> state) : Mean(std::move(state)) {}
};

/// The curve whose area an AUC computes.
/// Sent over the wire: add at the end, never renumber.
enum class Curve : std::uint8_t {
  roc = 0,  ///< true positive rate against false positive rate
  pr = 1,   ///< precision against recall
};

/// The height of the curve between two adjacent thresholds.
/// Sent over the wire: add at the end, never renumber.
enum class SummationMethod : std::uint8_t {
  /// The mean of both ends. For the PR curve, interpolates the counts: J. Davis and M. Goadrich, The
  /// relationship between precision-recall and ROC curves, ICML 2006.
  interpolation = 0,
  minoring = 1,  ///< the lower end
  majoring = 2,  ///< the upper end
};

struct AUCOptions {
  /// At least 2; evenly spaced from just below 0 to just above 1.
  std::int64_t num_thresholds = 200;
  Curve curve = Curve::roc;
  SummationMethod summation_method = SummationMethod::interpolation;
  /// Overrides num_thresholds: numbers in [0, 1], to which one below 0 and one above 1 are added.
  std::vector<double> thresholds = {};
};

/// Weighted counts at each threshold t; a prediction p is positive if p > t.
struct ConfusionCounts {
  std::vector<double> true_positives, false_positives, true_negatives, false_negatives;
};

/// The area under a curve, approximated at fixed thresholds as in tf.keras.metrics.AUC.
class CAPSTAN_API AUC : public Metric {
 public:
  /// Throws Error(invalid_argument) for fewer than 2 thresholds or a threshold outside of [0, 1].
  explicit AUC(std::string name, const AUCOptions& options = {});
  /// A label is positive if it is not 0. Throws Error(invalid_argument) for a prediction outside of [0, 1].
  void update_state(const Values& y_true, const Values& y_pred, const Values& sample_weight = 1) const;
  /// In [0, 1]; 0 if there are no examples to compute a rate from.
  double result() const;
  ConfusionCounts confusion_counts() const;
  /// In ascending order, including the one below 0 and the one above 1.
  const std::vector<double>& thresholds() const noexcept { return thresholds_; }

 private:
  friend struct Serializer<AUC>;
  AUC(Variable<double> state, AUCOptions options);
  AUC(std::string name, AUCOptions options, std::vector<double> thresholds);

  AUCOptions options_;
  std::vector<double> thresholds_;
};

}  // namespace capstan::metrics

namespace capstan {

/// A metric is serialized as its variable.
template <class M>
requires std::derived_from<M, metrics::Metric>
struct Serializer<M> {
  static void write(Writer& out, const M& metric) { capstan::write(out, metric.variable()); }
  static M read(Reader& in) { return M(capstan::read<Variable<double>>(in)); }
};

template <>
struct CAPSTAN_API Serializer<metrics::AUC> {
  static void write(Writer& out, const metrics::AUC& metric);
  static metrics::AUC read(Reader& in);
};

}  // namespace capstan

// metrics.cpp -- metrics, whose state is on a ps. Values are arrays of doubles.
#include "capstan/metrics.hpp"

#include <type_traits>

#include "bindings.hpp"

namespace capstan::python {
namespace {

using nb::literals::operator""_a;
using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

metrics::Values values_of(const Numbers& numbers) {
  Array<double> array;
  for (std::size_t axis = 0; axis < numbers.ndim(); ++axis) {
    array.shape.push_back(static_cast<std::int64_t>(numbers.shape(axis)));
  }
  array.values.assign(numbers.data(), numbers.data() + numbers.size());
  return array;
}

template <class M>
nb::class_<M> bind_metric(nb::module_& module, const char* name) {
  return nb::class_<M>(module, name)
      .def_prop_ro("name", [](const M& self) { return self.name(); })
      .def("result", &M::result, nb::call_guard<nb::gil_scoped_release>())
      .def("reset_state", &M::reset_state, nb::call_guard<nb::gil_scoped_release>())
      .def("__getstate__", [](const M& self) { return to_python(capstan::to_bytes(self)); })
      .def("__setstate__",
           [](M& self, const nb::bytes& state) { new (&self) M(from_bytes<M>(to_bytes(state))); });
}

/// Binds a metric whose update_state takes values and their weights.
template <class M>
void bind_metric_of_values(nb::module_& module, const char* name) {
  bind_metric<M>(module, name)
      .def(nb::init<std::string>(), "name"_a)
      .def("update_state", [](const M& self, const Numbers& values, const Numbers& weight) {
        self.update_state(values_of(values), values_of(weight));
      });
}
/// Adds an update_state that takes labels, predictions and their weights.
template <class M>
nb::class_<M> add_update_with_labels(nb::class_<M> metric) {
  return metric.def("update_state",
                    [](const M& self, const Numbers& truth, const Numbers& predicted, const Numbers& weight) {
                      self.update_state(values_of(truth), values_of(predicted), values_of(weight));
                    });
}

}  // namespace

void bind_metrics(nb::module_& parent) {
  nb::module_ module = parent.def_submodule("metrics");
  bind_metric_of_values<metrics::Sum>(module, "Sum");
  bind_metric_of_values<metrics::Mean>(module, "Mean");
  add_update_with_labels(bind_metric<metrics::Accuracy>(module, "Accuracy"))
      .def(nb::init<std::string>(), "name"_a);
  add_update_with_labels(bind_metric<metrics::MeanSquaredError>(module, "MeanSquaredError"))
      .def(nb::init<std::string>(), "name"_a);
  add_update_with_labels(bind_metric<metrics::AUC>(module, "AUC"))
      .def(
          "__init__",
          [](metrics::AUC* self, const std::string& name, std::int64_t num_thresholds,
             const std::string& curve, const std::string& method, std::vector<double> thresholds) {
            using metrics::Curve;
            using metrics::SummationMethod;
            metrics::AUCOptions options{.num_thresholds = num_thresholds,
                                        .thresholds = std::move(thresholds)};
            // metrics.py has checked `curve` and `method`.
            options.curve = curve == "PR" ? Curve::pr : Curve::roc;
            options.summation_method = method == "minoring"   ? SummationMethod::minoring
                                       : method == "majoring" ? SummationMethod::majoring
                                                              : SummationMethod::interpolation;
            new (self) metrics::AUC(name, options);
          },
          "name"_a, "num_thresholds"_a, "curve"_a, "summation_method"_a, "thresholds"_a)
      .def_prop_ro("thresholds", &metrics::AUC::thresholds)
      .def("confusion_counts", [](const metrics::AUC& self) {
        const metrics::ConfusionCounts counts = self.confusion_counts();
        return std::vector{counts.true_positives, counts.false_positives, counts.true_negatives,
                           counts.false_negatives};
      });
}

}  // namespace capstan::python

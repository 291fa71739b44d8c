// evaluation.cpp -- see evaluation.hpp.
#include "train/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"

namespace capstan::train {

double value_of(const Evaluation& evaluation, const std::string& metric) {
  const auto found = std::find_if(evaluation.metrics.begin(), evaluation.metrics.end(),
                                  [&](const Metric& one) { return one.name == metric; });
  CAPSTAN_ASSERT(found != evaluation.metrics.end());
  return found->value;
}

nlohmann::json to_json(const Evaluation& evaluation) {
  nlohmann::json json = nlohmann::json::object();
  for (const Metric& metric : evaluation.metrics) json[metric.name] = metric.value;
  json[evaluation.counted] = evaluation.count;
  return json;
}

std::string to_string(const Evaluation& evaluation) {
  std::string text;
  for (const Metric& metric : evaluation.metrics) {
    text += fmt::format("{} {:.{}f}  ", metric.label.empty() ? metric.name : metric.label, metric.value,
                        metric.digits);
  }
  return text + fmt::format("({} {})", evaluation.count, evaluation.counted);
}

}  // namespace capstan::train

// evaluation.hpp -- the quality of a model's current values on a part of the data: named metrics.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace capstan::train {

struct Metric {
  std::string name;  // key in summaries and traces: "logloss"
  double value = 0;
  std::string label = {};  // shown in lines: "AUC"; empty: the name
  int digits = 4;          // shown behind the point
};

struct Evaluation {
  std::vector<Metric> metrics;
  std::int64_t count = 0;
  std::string counted = "examples";  // what `count` counts
};

/// The metric by which the values of different epochs are compared.
struct Selection {
  std::string metric;
  bool larger_is_better = false;
};

/// Returns the value of a metric. REQUIRES: it exists.
double value_of(const Evaluation& evaluation, const std::string& metric);

/// {"logloss": 0.3244, "auc": 0.9022, "examples": 16281}
nlohmann::json to_json(const Evaluation& evaluation);

/// Returns text such as "logloss 0.324400  AUC 0.9022  (16281 examples)".
std::string to_string(const Evaluation& evaluation);

}  // namespace capstan::train

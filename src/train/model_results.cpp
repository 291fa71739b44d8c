// model_results.cpp -- the settings that a run used, and the metrics of each part of the data.
#include "train/model_results.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace capstan::train {
namespace {

nlohmann::json used(const ModelOptions& options, const DataSizes& data) {
  nlohmann::json used{{"mode", std::string(to_string(options.mode))},
                      {"batch", options.batch},
                      {"epochs", options.epochs},
                      {"patience", options.patience},
                      {"optimizer", std::string(to_string(options.optimizer.kind))},
                      {"learning_rate", options.optimizer.learning_rate}};
  const bool sparse = options.program != Program::mf && options.program != Program::mlp;
  const L2Penalty l2 = options.sparse_l2.for_examples(data.train);
  used["l2"] = sparse ? l2.weights : options.l2;
  if (sparse && options.program != Program::lr) used["factor_l2"] = l2.factors;
  if (options.mode == Mode::stale_synchronous) used["staleness"] = options.staleness;
  if (options.program == Program::fm || options.program == Program::mf) used["factors"] = options.factors;
  if (options.program == Program::mf) used["implicit"] = options.implicit;
  if (options.program == Program::mlp) used["hidden"] = options.hidden;
  if (deep_model(options.program)) used["shape"] = options.deep.text();
  return used;
}

}  // namespace

Results results_of(const ModelOptions& options, const ModelReport& report) {
  Results results{.run = report.run};
  results.headline = fmt::format("{} on {} training examples, {} {}", to_string(options.program),
                                 report.data.train, report.data.width,
                                 options.program == Program::mlp  ? "pixels"
                                 : options.program == Program::mf ? "users and items"
                                                                  : "features");
  results.lines.push_back(
      fmt::format("train: objective {:.10f}  {}", report.objective, to_string(report.train)));
  results.used = used(options, report.data);
  results.data = {{"train", report.data.train},
                  {"valid", report.data.valid},
                  {"test", report.data.test},
                  {"width", report.data.width},
                  {"classes", report.data.classes}};
  results.quality["train"] = to_json(report.train);
  results.quality["train"]["objective"] = report.objective;
  if (report.valid) {
    results.lines.push_back("valid: " + to_string(*report.valid));
    results.quality["valid"] = to_json(*report.valid);
  }
  if (report.test) {
    results.lines.push_back("test:  " + to_string(*report.test));
    results.quality["test"] = to_json(*report.test);
  }
  return results;
}

}  // namespace capstan::train

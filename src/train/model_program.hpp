// model_program.hpp -- the coordinator's part of `capstan train lr|fm|mlp`: epochs, evaluation, checkpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capstan/cluster.hpp"
#include "train/metrics.hpp"
#include "train/model_options.hpp"
#include "train/tasks.hpp"

namespace capstan::train {

/// Metrics of a model's current values.
struct Metrics {
  std::int64_t examples = 0;
  double log_loss = 0;
  double accuracy = 0;
  double auc = 0;  // NaN unless there are two classes
};

struct ModelEpoch {
  int epoch = 0;    // from 1
  double loss = 0;  // mean of log-loss plus penalty over the epoch, with the values at each step
  double seconds = 0;
  double examples_per_second = 0;
  std::optional<Metrics> evaluated;  // on the test data, or on the training data if there is none
};

struct ModelReport {
  DataSizes data;
  int first_epoch = 1;  // above 1 in a resumed run
  std::int64_t examples = 0;
  double seconds = 0;  // duration of training only
  double evaluation_seconds = 0;
  double checkpoint_seconds = 0;
  std::vector<ModelEpoch> epochs;
  double objective = 0;  // log-loss of the training data plus penalty, with the final values
  Metrics train;
  std::optional<Metrics> test;
  std::string checkpoint;    // the last one; empty if none was requested
  std::string resumed_from;  // empty if not resumed
  std::string stopped;  // reason of an early stop; empty for a complete run. An early stop has no results
  int workers_lost = 0;

  double examples_per_second() const { return seconds > 0 ? static_cast<double>(examples) / seconds : 0; }
};

struct ModelProgress {
  int epoch = 0;
  int epochs = 0;
  std::int64_t done = 0;  // examples
  std::int64_t total = 0;
  double loss = 0;
};

struct ModelHooks {
  std::function<void(const ModelProgress&)> progress = [](const ModelProgress&) {};
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

/// Reads the data, trains, evaluates and saves checkpoints. Runs on the coordinator. Throws Error.
ModelReport run_model(const Cluster& cluster, const ModelOptions& options, const ModelHooks& hooks);

/// Returns text such as "logloss 0.3244  AUC 0.9022  accuracy 0.8499  (16281 examples)".
std::string to_string(const Metrics& metrics);

}  // namespace capstan::train

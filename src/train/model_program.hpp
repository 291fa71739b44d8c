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
#include "train/orders.hpp"

namespace capstan::train {

/// Of a model's values at one time.
struct Metrics {
  std::int64_t examples = 0;
  double log_loss = 0;
  double accuracy = 0;
  double auc = 0;  // NaN with other than two classes
};

struct ModelEpoch {
  int epoch = 0;    // from 1
  double loss = 0;  // mean over the epoch, as the values were then: log-loss and penalty
  double seconds = 0;
  double examples_per_second = 0;
  std::optional<Metrics> evaluated;  // on the test data; on the training data where there is none
};

struct ModelReport {
  DataSizes data;
  int first_epoch = 1;  // above 1 in a run that was resumed
  std::int64_t examples = 0;
  double seconds = 0;  // of training alone
  double evaluation_seconds = 0;
  double checkpoint_seconds = 0;
  std::vector<ModelEpoch> epochs;
  double objective = 0;  // of the final values: log-loss of the training data and penalty
  Metrics train;
  std::optional<Metrics> test;
  std::string checkpoint;    // the last one, empty when none was asked for
  std::string resumed_from;  // empty when not resumed
  std::string stopped;       // why it was saved and ended before its time; then there are no results
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
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

/// Reads, trains, evaluates and saves. On the coordinator. Throws Error.
ModelReport run_model(const Cluster& cluster, const ModelOptions& options, const ModelHooks& hooks);

/// "logloss 0.3244  AUC 0.9022  accuracy 0.8499  (16281 examples)"
std::string to_string(const Metrics& metrics);

}  // namespace capstan::train

// model_results.hpp -- the report of a program that trains a Model (model.hpp), as text and JSON.
#pragma once

#include <optional>

#include "train/evaluation.hpp"
#include "train/model_options.hpp"
#include "train/program.hpp"
#include "train/run_report.hpp"
#include "train/tasks.hpp"

namespace capstan::train {

struct ModelReport {
  RunReport run = {};
  DataSizes data = {};
  double objective = 0;  // log-loss of the training data plus penalty, with the final values
  Evaluation train = {};
  std::optional<Evaluation> valid = {};
  std::optional<Evaluation> test = {};
};

Results results_of(const ModelOptions& options, const ModelReport& report);

}  // namespace capstan::train

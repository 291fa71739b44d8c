// model_program.hpp -- the programs that train a Model (model.hpp): epochs over shares of examples, and
// evaluation.
#pragma once

#include <memory>
#include <optional>

#include "train/model_options.hpp"
#include "train/program.hpp"

namespace capstan::train {

struct ModelReport {
  RunReport run = {};
  DataSizes data = {};
  double objective = 0;  // log-loss of the training data plus penalty, with the final values
  Evaluation train = {};
  std::optional<Evaluation> valid = {};
  std::optional<Evaluation> test = {};
};

/// Makes the program of a Model.
std::unique_ptr<TrainingProgram> make_model_program(const ModelOptions& options);

/// Reads the data, trains, evaluates and saves checkpoints. Runs on the coordinator. Throws Error.
ModelReport run_model(const Cluster& cluster, const ModelOptions& options, const RunHooks& hooks);

}  // namespace capstan::train

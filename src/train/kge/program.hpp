// program.hpp -- the coordinator's part of `capstan train kge`: epochs of slices, evaluation, predictions.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "capstan/capstan.hpp"
#include "train/kge/auto_search.hpp"
#include "train/kge/model.hpp"
#include "train/kge/ranking.hpp"
#include "train/program.hpp"

namespace capstan {
class Settings;
}

namespace capstan::kge {

struct AutoOptions {
  bool enabled = false;
  std::chrono::milliseconds time{0};  // of the search and the training after it
  int trial_epochs = 0;
  std::vector<SearchedSetting> searched;  // those that the user has not given
};

struct ProgramOptions : train::RunOptions {
  std::string data = "wordnet";
  ModelKind model = ModelKind::complex;
  int dim = 0;
  int negatives = 0;
  int batch = 0;
  int slice_batches = 8;
  bool on_gpu = false;
  bool looks_ahead = true;
  float n3 = 0;
  float margin = 0;
  bool refuse_unseen = false;
  int predictions = 5;
  AutoOptions auto_search;

  /// Fills unset settings with the model's defaults. Throws Error(invalid_argument) for incompatible values:
  /// an odd dim with ComplEx or RotatE, --resume without --checkpoint-dir, those that TablePrecision rejects.
  static ProgramOptions from(const Settings& settings);
};

struct Prediction {
  std::string head;
  std::string relation;
  std::string predicted;
  std::string truth;
  double rank = 0;
  bool right() const { return predicted == truth; }
};

struct LearnedRelation {
  std::string name;
  double tails_mrr = 0;  // over the validation triples compared
};

struct Report {
  train::RunReport run;
  std::int64_t entities = 0;
  std::int64_t relations = 0;
  std::int64_t train = 0;
  std::int64_t valid = 0;
  std::int64_t test = 0;
  Metrics result;
  /// Trials and choice of --auto; null without it. `chosen` are the settings of the result.
  nlohmann::json auto_search;
  TrialSettings chosen;
  double random_mrr = 0;  // expected MRR of random guessing
  std::vector<Prediction> predictions;
  /// Relations that predictions were drawn from, best first. Empty if there were no validation triples to
  /// compare by; predictions then come from any relation.
  std::vector<LearnedRelation> predicted_relations;
  int compared_relations = 0;
};

/// Makes the program of `capstan train kge`.
std::unique_ptr<train::TrainingProgram> make_kge_program(const ProgramOptions& options);

/// Trains, evaluates and saves checkpoints. Runs on the coordinator. Throws Error.
Report run_program(const Cluster& cluster, const ProgramOptions& options, const train::RunHooks& hooks);

}  // namespace capstan::kge

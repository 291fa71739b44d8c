// program.hpp -- the coordinator's part of `capstan train kge`: epochs, evaluation, checkpoints, predictions.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "capstan/capstan.hpp"
#include "train/kge/model.hpp"
#include "train/kge/ranking.hpp"
#include "train/stop_request.hpp"
#include "train/table_precision.hpp"

namespace capstan {
class Settings;
}

namespace capstan::kge {

struct ProgramOptions {
  std::string data = "wordnet";
  ModelKind model = ModelKind::complex;
  int dim = 0;
  int negatives = 0;
  int batch = 0;
  int slice_batches = 8;
  bool on_gpu = false;
  bool looks_ahead = true;
  int epochs = 0;
  Optimizer optimizer;
  float n3 = 0;
  std::uint64_t seed = 1;
  ShardMemory memory = ShardMemory::host;
  DType communication_dtype = DType::float32;
  train::TablePrecision tables;
  bool int8_lookups = false;
  std::string checkpoint_dir;
  int checkpoint_every = 5;
  int max_to_keep = 3;
  bool resume = false;
  int eval_every = 0;
  bool refuse_unseen = false;
  int predictions = 5;
  train::StopOptions stop;
  std::string settings_json = "{}";  // with the model's defaults, for checkpoints and summaries

  /// Fills unset settings with the model's defaults. Throws Error(invalid_argument) for incompatible values:
  /// an odd dim with ComplEx, --resume without --checkpoint-dir, those that TablePrecision rejects.
  static ProgramOptions from(const Settings& settings);
};

/// State at the end of an epoch.
struct EpochReport {
  int epoch = 0;  // from 1
  double loss = 0;
  double seconds = 0;
  bool evaluated = false;
  Metrics valid;
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
  std::int64_t entities = 0;
  std::int64_t relations = 0;
  std::int64_t train = 0;
  std::int64_t valid = 0;
  std::int64_t test = 0;
  int first_epoch = 1;  // above 1 in a resumed run
  std::int64_t triples = 0;
  double seconds = 0;  // duration of training only
  double evaluation_seconds = 0;
  double checkpoint_seconds = 0;
  std::vector<EpochReport> epochs;
  Metrics result;
  double random_mrr = 0;  // expected MRR of random guessing
  std::vector<Prediction> predictions;
  /// Relations that predictions were drawn from, best first. Empty if there were no validation triples to
  /// compare by; predictions then come from any relation.
  std::vector<LearnedRelation> predicted_relations;
  int compared_relations = 0;
  std::string checkpoint;    // the last one; empty if none was requested
  std::string resumed_from;  // empty if not resumed
  std::string stopped;  // reason of an early stop; empty for a complete run. An early stop has no results
  int workers_lost = 0;

  double triples_per_second() const { return seconds > 0 ? static_cast<double>(triples) / seconds : 0; }
};

struct TrainProgress {
  int epoch = 0;  // from 1
  int epochs = 0;
  std::int64_t done = 0;
  std::int64_t total = 0;
  double loss = 0;  // per query, over the last slice
};

struct ProgramHooks {
  std::function<void(const TrainProgress&)> progress = [](const TrainProgress&) {};
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

/// Trains, evaluates and saves checkpoints. Runs on the coordinator. Throws Error.
Report run_program(const Cluster& cluster, const ProgramOptions& options, const ProgramHooks& hooks);

/// Returns a line such as "whale.n.02 -- hypernym --> baleen_whale.n.01   right".
std::string to_string(const Prediction& prediction);
/// Describes how the triples of the report's predictions were selected.
std::string predictions_header(const Report& report);

}  // namespace capstan::kge

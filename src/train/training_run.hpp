// training_run.hpp -- what every program does around its epochs: checkpoints, resumption, early stopping and
// reports. Used on the coordinator, by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capstan/capstan.hpp"
#include "train/best_values.hpp"
#include "train/early_stopping.hpp"
#include "train/run_options.hpp"
#include "train/run_report.hpp"
#include "train/stop_request.hpp"

namespace capstan::train {

/// The properties that a checkpoint must match to be restored: names, for error messages, and values.
using Identity = std::vector<std::pair<std::string, std::string>>;

class TrainingRun {
 public:
  struct Described {
    std::string program;  // "train lr"
    std::string unit;     // "examples"
    Selection selection;  // by which --patience compares values
  };

  /// Makes the strategy, enters its scope, and starts the coordinator. Throws Error(failed_precondition) if
  /// the checkpoint directory holds checkpoints and the run does not resume. `hooks` must outlive this
  /// object.
  TrainingRun(const Cluster& cluster, Described described, const RunOptions& options, const RunHooks& hooks);

  ParameterServerStrategy& strategy() noexcept { return strategy_; }
  ClusterCoordinator& coordinator() noexcept { return *coordinator_; }
  const ClusterCoordinator& coordinator() const noexcept { return *coordinator_; }
  RunReport& report() noexcept { return report_; }
  const RunHooks& hooks() const noexcept { return hooks_; }

  /// With --resume, restores the newest checkpoint and returns the state that was saved with it; otherwise,
  /// or if there is none, an empty object. Sets RunReport::first_epoch. Throws Error(failed_precondition) for
  /// a checkpoint of another program or identity.
  nlohmann::json resume(const Identity& identity);
  /// Returns true if the restored state is that of a run that ended.
  bool is_complete() const noexcept { return complete_; }

  /// Why the run must save and exit now; "" to continue. `next`: upper bound of the time until the next call.
  std::string stop_reason(std::chrono::milliseconds next) { return stop_.reason(next); }

  /// Records the evaluation of the last epoch of the report. `step`: of the scalars of a trace. With
  /// --patience, keeps the values if they are the best so far and `may_keep`.
  void add_evaluation(const Evaluation& evaluation, Part part, double seconds, std::int64_t step,
                      bool may_keep = true);
  /// Returns true if the epoch is the last one: by number, by --patience, or because `out_of_time`. Restores
  /// the best values then.
  bool ends_after(int epoch, bool out_of_time = false);
  /// Restores the best values to train on from them, and counts evaluations for --patience from here on.
  /// Keeps the current values, with a line for the log, if the best ones were not kept.
  void continue_from_best(int epoch);

  /// Returns true if checkpoints are saved and one is due after the epoch.
  bool checkpoint_is_due(int epoch) const;
  /// Saves a checkpoint with the number `step`. `progress` has the number of complete epochs as "epoch", and
  /// the number of trained items of the next one as "begun" if there are any. With `background`, training may
  /// continue while it is written.
  void save_checkpoint(int step, const nlohmann::json& progress, bool background);

 private:
  void open_checkpoints();
  /// The user state of a checkpoint.
  nlohmann::json state_of(nlohmann::json progress) const;
  void check_state(const std::string& text, const std::string& where, const Identity& identity) const;

  std::string program_, unit_;
  RunOptions options_;
  const RunHooks& hooks_;
  Selection selection_;
  // Before all that may throw, because its destructor ends the job on the other ranks.
  ParameterServerStrategy strategy_;
  ParameterServerStrategy::Scope scope_;
  std::optional<ClusterCoordinator> coordinator_;
  StopRequest stop_;
  std::optional<CheckpointManager> checkpoints_;
  EarlyStopping early_stopping_;
  BestValues best_values_;
  Identity identity_;
  RunReport report_;
  bool complete_ = false;
  bool out_of_time_ = false;  // ended by ends_after
};

}  // namespace capstan::train

// best_values.hpp -- keeps the variables of one epoch, such as the best, in a checkpoint, and restores them.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "capstan/capstan.hpp"
#include "train/run_options.hpp"

namespace capstan::train {

/// Used on the coordinator, by one thread, while no closure runs.
class BestValues {
 public:
  /// Keeps the values in CHECKPOINT_DIR/`name`; messages call them by that name. Without a checkpoint
  /// directory, keeps them in a temporary directory, which the destructor deletes, if this host has all ps;
  /// otherwise the values are not kept, with a line for `log`.
  BestValues(ParameterServerStrategy& strategy, const RunOptions& options,
             std::function<void(const std::string&)> log, std::string name = "best");
  ~BestValues();
  BestValues(const BestValues&) = delete;
  BestValues& operator=(const BestValues&) = delete;

  /// Replaces the kept values by the current ones, those of an epoch. `state` is the user state of their
  /// checkpoint. If they cannot be written, logs why, and keeps none from then on.
  void keep(int epoch, const std::string& state);
  /// Restores the values of an epoch; returns false if others or none are kept.
  bool restore(int epoch);
  /// Deletes the kept values.
  void discard();

 private:
  bool open();

  ParameterServerStrategy& strategy_;
  std::string name_;
  std::filesystem::path directory_;
  bool is_temporary_;
  std::string settings_;
  std::function<void(const std::string&)> log_;
  std::optional<CheckpointManager> checkpoints_;
  bool disabled_ = false;
};

}  // namespace capstan::train

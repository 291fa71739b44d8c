// best_values.hpp -- keeps the variables of the best epoch in a checkpoint, and restores them.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "capstan/capstan.hpp"

namespace capstan::train {

/// Used on the coordinator, by one thread, while no closure runs.
class BestValues {
 public:
  /// Keeps the values in CHECKPOINT_DIR/best. Without a checkpoint directory, keeps them in a temporary
  /// directory, which the destructor deletes, if this host has all ps; otherwise the values are not kept,
  /// with a line for `log`.
  BestValues(ParameterServerStrategy& strategy, std::filesystem::path checkpoint_dir,
             std::function<void(const std::string&)> log);
  ~BestValues();
  BestValues(const BestValues&) = delete;
  BestValues& operator=(const BestValues&) = delete;

  /// Replaces the kept values by the current ones. If they cannot be written, logs why, and keeps none from
  /// then on.
  void keep(int epoch);
  /// Restores the kept values; returns false if there are none.
  bool restore();

 private:
  bool open();

  ParameterServerStrategy& strategy_;
  std::filesystem::path directory_;
  bool is_temporary_;
  std::function<void(const std::string&)> log_;
  std::optional<CheckpointManager> checkpoints_;
  bool disabled_ = false;
};

}  // namespace capstan::train

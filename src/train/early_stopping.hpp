// early_stopping.hpp -- decides after each evaluation whether the values are the best so far, and whether to
// stop (Prechelt, "Early Stopping -- But When?", 1998: stop after a number of evaluations without progress).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace capstan::train {

class EarlyStopping {
 public:
  /// `patience`: number of evaluations without an improvement after which to stop; 0: never.
  EarlyStopping(int patience, bool larger_is_better)
      : patience_(patience), larger_is_better_(larger_is_better) {}

  /// Records the metric after an epoch. Returns true if it is the best so far: the first one, or better than
  /// the best by more than a ten-thousandth of it. NaN and infinity are never the best.
  bool record(int epoch, double value);
  /// Counts the evaluations without an improvement from here on.
  void restart() noexcept { waited_ = 0; }
  bool should_stop() const noexcept { return patience_ > 0 && waited_ >= patience_; }
  /// Returns the epoch of the best value; nullopt before the first one.
  std::optional<int> best_epoch() const noexcept { return best_epoch_; }

  /// The state to save with a checkpoint, and to continue from.
  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  bool is_better(double value) const noexcept;

  int patience_;
  bool larger_is_better_;
  std::optional<int> best_epoch_;
  double best_ = 0;
  int waited_ = 0;  // evaluations since the best one
};

}  // namespace capstan::train

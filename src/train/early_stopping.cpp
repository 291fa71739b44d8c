// early_stopping.cpp -- see early_stopping.hpp.
#include "train/early_stopping.hpp"

#include <cmath>

namespace capstan::train {
namespace {

/// Smaller improvements are noise, and would prolong a training without end.
constexpr double kMinImprovement = 1e-4;

}  // namespace

bool EarlyStopping::is_better(double value) const noexcept {
  if (!std::isfinite(value)) return false;
  if (!best_epoch_) return true;
  const double margin = kMinImprovement * std::abs(best_);
  return larger_is_better_ ? value > best_ + margin : value < best_ - margin;
}

bool EarlyStopping::record(int epoch, double value) {
  if (!is_better(value)) {
    ++waited_;
    return false;
  }
  best_epoch_ = epoch;
  best_ = value;
  waited_ = 0;
  return true;
}

nlohmann::json EarlyStopping::state() const {
  if (!best_epoch_) return {{"waited", waited_}};
  return {{"best_epoch", *best_epoch_}, {"best", best_}, {"waited", waited_}};
}

void EarlyStopping::restore(const nlohmann::json& state) {
  waited_ = state.value("waited", 0);
  if (!state.contains("best_epoch")) return;
  best_epoch_ = state.at("best_epoch").get<int>();
  best_ = state.at("best").get<double>();
}

}  // namespace capstan::train

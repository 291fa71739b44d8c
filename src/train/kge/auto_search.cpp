// auto_search.cpp -- see auto_search.hpp.
#include "train/kge/auto_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/assert.hpp"

namespace capstan::kge {
namespace {

/// Smaller gains of the MRR are noise.
constexpr double kMinGain = 0.002;

nlohmann::json values_of(const TrialSettings& settings, const std::vector<SearchedSetting>& searched) {
  nlohmann::json values = nlohmann::json::object();
  for (const SearchedSetting& one : searched) values[one.name] = settings.*one.value;
  return values;
}

}  // namespace

std::vector<SearchedSetting> searched_settings(ModelKind model) {
  const SearchedSetting rate{"learning-rate", &TrialSettings::learning_rate, 2};
  const SearchedSetting n3{"n3", &TrialSettings::n3, 0.5};
  if (model == ModelKind::distmult) {
    // Last, since every trial after a step takes four times as long.
    const auto fewest = static_cast<double>(defaults_of(model).negatives);
    return {n3, rate, {"negatives", &TrialSettings::negatives, 4, fewest}};
  }
  if (has_n3(model)) return {n3, rate};
  if (model == ModelKind::rotate) return {rate, {"margin", &TrialSettings::margin, 1.5}};
  return {rate};
}

AutoSearch::AutoSearch(const TrialSettings& first, std::vector<SearchedSetting> searched, double time)
    : first_(first), searched_(std::move(searched)), time_(time), next_(first) {}

const TrialSettings& AutoSearch::next() const {
  CAPSTAN_ASSERT(!done_);
  return next_;
}

bool AutoSearch::record(double mrr, double seconds) {
  CAPSTAN_ASSERT(!done_);
  const bool improved = add(mrr, seconds);
  done_ = position_ == searched_.size() || this->seconds() + kTrialsInTraining * next_seconds() > time_;
  return improved;
}

/// Adds a result, and selects the settings of the trial after it unless there are none. Returns true if the
/// result is the best one so far.
bool AutoSearch::add(double mrr, double seconds) {
  trials_.push_back({next_, mrr, seconds});
  const double best_mrr = best_ ? trials_[*best_].mrr : 0;
  const bool improved = std::isfinite(mrr) && (!best_ || mrr > best_mrr + kMinGain);
  if (improved) best_ = trials_.size() - 1;
  if (trials_.size() > 1 && !improved) turn_or_advance();
  select_next();
  return improved;
}

/// Takes the next step from the best settings whose value is in the range of its setting, if there is one.
void AutoSearch::select_next() {
  for (; position_ < searched_.size(); turn_or_advance()) {
    const SearchedSetting& setting = searched_[position_];
    is_first_step_ = factor_ == 0;
    if (is_first_step_) factor_ = setting.factor;
    next_ = best();
    double& value = next_.*setting.value;
    value *= factor_;
    if (value >= setting.smallest && value <= setting.largest) return;
  }
}

/// Selects the next direction after a step that was no improvement: the other direction after a first step,
/// otherwise the next setting.
void AutoSearch::turn_or_advance() {
  if (is_first_step_) {
    factor_ = 1 / factor_;
    return;
  }
  ++position_;
  factor_ = 0;
}

/// Estimate of the seconds of the next trial: those of the longest one, scaled by the number of negatives.
double AutoSearch::next_seconds() const noexcept {
  double longest = 0;
  for (const Trial& trial : trials_) {
    const double work = std::max(1.0, next_.negatives) / std::max(1.0, trial.settings.negatives);
    longest = std::max(longest, work * trial.seconds);
  }
  return longest;
}

double AutoSearch::seconds() const noexcept {
  return std::accumulate(trials_.begin(), trials_.end(), 0.0,
                         [](double sum, const Trial& trial) { return sum + trial.seconds; });
}

const TrialSettings& AutoSearch::best() const noexcept { return best_ ? trials_[*best_].settings : first_; }

std::vector<std::string> AutoSearch::table() const {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    std::string line = fmt::format("  trial {}:", i + 1);
    for (const SearchedSetting& one : searched_)
      line += fmt::format("  --{} {:.6g}", one.name, trials_[i].settings.*one.value);
    lines.push_back(line + fmt::format("  valid MRR {:.4f}  ({:.0f} s){}", trials_[i].mrr, trials_[i].seconds,
                                       best_ == i ? "  chosen" : ""));
  }
  return lines;
}

nlohmann::json AutoSearch::to_json() const {
  nlohmann::json trials = nlohmann::json::array();
  for (const Trial& trial : trials_) {
    nlohmann::json one = values_of(trial.settings, searched_);
    one["valid_mrr"] = trial.mrr;
    one["seconds"] = trial.seconds;
    trials.push_back(std::move(one));
  }
  return {{"chosen", values_of(best(), searched_)}, {"trials", trials}};
}

nlohmann::json AutoSearch::state() const {
  nlohmann::json results = nlohmann::json::array();
  // JSON has no NaN: it becomes null.
  for (const Trial& trial : trials_) results.push_back({{"mrr", trial.mrr}, {"seconds", trial.seconds}});
  return {{"results", results}, {"done", done_}};
}

void AutoSearch::restore(const nlohmann::json& state) {
  CAPSTAN_ASSERT(trials_.empty());
  for (const nlohmann::json& result : state.value("results", nlohmann::json::array())) {
    if (position_ == searched_.size() && !trials_.empty()) break;
    const nlohmann::json& mrr = result.at("mrr");
    add(mrr.is_number() ? mrr.get<double>() : std::nan(""), result.at("seconds").get<double>());
  }
  done_ = state.value("done", false) || (position_ == searched_.size() && !trials_.empty());
}

}  // namespace capstan::kge

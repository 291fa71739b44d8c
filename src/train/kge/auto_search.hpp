// auto_search.hpp -- chooses settings by the validation MRR of short trainings, within a time budget.
//
//   AutoSearch search(defaults, searched_settings(model), limit);
//   while (!search.done()) search.record(mrr at the end of a trial with search.next(), its seconds);
//   // train on from the values of search.best()
//
// It climbs: one setting after another is multiplied by a factor as long as the MRR improves by more than its
// noise. If the first step is no improvement, the setting is divided by the factor instead. Values out of the
// range of a setting are skipped.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "train/kge/model.hpp"

namespace capstan::kge {

/// Settings that a trial may change.
struct TrialSettings {
  double learning_rate = 0;
  double n3 = 0;
  double margin = 0;
  double negatives = 0;  // a whole number; the time of a trial is proportional to it
  bool operator==(const TrialSettings&) const = default;
};

struct SearchedSetting {
  std::string name;  // "n3"
  double TrialSettings::*value = nullptr;
  double factor = 0;  // of the first step
  double smallest = 0;
  double largest = std::numeric_limits<double>::infinity();
};

/// The settings whose best values depend on the data, most important first.
std::vector<SearchedSetting> searched_settings(ModelKind model);

struct Trial {
  TrialSettings settings;
  double mrr = 0;  // may be NaN
  double seconds = 0;
};

/// A trial is this part of a complete training, by its epochs. The best one is continued afterwards.
constexpr int kTrialsInTraining = 3;

/// Deterministic: the next settings depend only on the results so far.
class AutoSearch {
 public:
  /// The first trial has the settings `first`, whatever its time. A later one is proposed only if `time`, in
  /// seconds, is enough for it and for the remaining epochs of a complete training, by the longest trial so
  /// far, of which a trial with more negatives takes a multiple.
  AutoSearch(const TrialSettings& first, std::vector<SearchedSetting> searched, double time);

  bool done() const noexcept { return done_; }
  /// The settings of the next trial. REQUIRES: not done.
  const TrialSettings& next() const;
  /// Records the result of that trial. REQUIRES: not done.
  /// Returns true if it is the best one so far.
  bool record(double mrr, double seconds);
  /// Proposes no further trial.
  void finish() noexcept { done_ = true; }

  const std::vector<Trial>& trials() const noexcept { return trials_; }
  /// Seconds of all trials.
  double seconds() const noexcept;
  /// The settings of the best trial; the first settings if no trial has a finite MRR. Of trials that
  /// differ by less than the noise of the MRR, the earliest one.
  const TrialSettings& best() const noexcept;
  /// Index of the best trial; nullopt if none has a finite MRR.
  std::optional<std::size_t> best_trial() const noexcept { return best_; }

  /// A line for each trial.
  std::vector<std::string> table() const;
  nlohmann::json to_json() const;

  /// The state to save with a checkpoint, and to continue from. REQUIRES of restore(): no trial so far.
  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  bool add(double mrr, double seconds);
  void turn_or_advance();
  void select_next();
  double next_seconds() const noexcept;

  TrialSettings first_;
  std::vector<SearchedSetting> searched_;
  double time_;
  std::vector<Trial> trials_;
  std::optional<std::size_t> best_;
  TrialSettings next_;
  std::size_t position_ = 0;    // in searched_
  double factor_ = 0;           // of the step to next_; 0 before the first one of a setting
  bool is_first_step_ = false;  // whether that step is the first one of its setting
  bool done_ = false;
};

}  // namespace capstan::kge

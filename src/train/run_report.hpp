// run_report.hpp -- what a program reports while it trains and at its end.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "train/evaluation.hpp"
#include "train/tasks.hpp"

namespace capstan::train {

struct EpochReport {
  int epoch = 0;       // from 1
  double loss = 0;     // mean over the epoch, with the values at each step
  double seconds = 0;  // of training, since the start of the run
  std::optional<Evaluation> evaluated = {};
  Part evaluated_part = Part::train;
};

struct RunReport {
  int first_epoch = 1;     // above 1 in a resumed run
  std::int64_t items = 0;  // trained: examples, triples
  double seconds = 0;      // of training only
  double evaluation_seconds = 0;
  double checkpoint_seconds = 0;
  std::vector<EpochReport> epochs;
  int best_epoch = 0;        // whose values are the result; 0: the last one
  std::string checkpoint;    // the last one; empty if none was requested
  std::string resumed_from;  // empty if not resumed
  std::string
      stopped;  // why the run has to be resumed later; empty for a complete run. Then there are no results
  int workers_lost = 0;

  double items_per_second() const { return seconds > 0 ? static_cast<double>(items) / seconds : 0; }
};

/// A report in the form in which it is printed and stored.
struct Results {
  RunReport run;
  std::string headline = {};            // "complex on 40943 entities, 11 relations, 86835 training triples"
  std::vector<std::string> lines = {};  // the quality, printed below the headline
  std::vector<std::string> more = {};   // printed after that, behind an empty line
  nlohmann::json used = {};             // member "used" of the summary
  nlohmann::json data = {};             // member "data" of the summary
  nlohmann::json quality = {};          // the other members of the summary
};

struct RunProgress {
  int epoch = 0;  // from 1
  int epochs = 0;
  std::int64_t done = 0;  // items over all epochs
  std::int64_t total = 0;
  double loss = 0;
  bool may_end_early = false;  // before `total`
};

struct RunHooks {
  std::function<void(const RunProgress&)> progress = [](const RunProgress&) {};
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

}  // namespace capstan::train

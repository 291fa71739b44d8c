// tasks.hpp -- arguments and results of the closures that train and evaluate a Model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::train {

/// How far workers may drift apart: docs/consistency.md.
enum class Mode : std::uint8_t { asynchronous, stale_synchronous, synchronous };

/// The parts of a data set. Early stopping watches the validation data.
enum class Part : std::uint8_t { train, valid, test };

constexpr std::string_view to_string(Part part) noexcept {
  return part == Part::train ? "train" : part == Part::valid ? "valid" : "test";
}

/// The files of each part of a data set.
struct PartFiles {
  std::vector<std::string> train = {};
  std::vector<std::string> valid = {};
  std::vector<std::string> test = {};
  double valid_fraction = 0;   // of the examples in `train`, which are the validation data
  bool more_of_first = false;  // a larger fraction of the first examples: see Split

  bool has(Part part) const { return !of(part).empty(); }
  const std::vector<std::string>& of(Part part) const {
    if (part == Part::test) return test;
    return part == Part::valid && valid_fraction == 0 ? valid : train;
  }
};

/// The shares of the training data that one worker processes; see shares.hpp.
struct Shares {
  std::vector<std::int64_t> assigned = {};
  std::int64_t total_count = 1;  // number of shares of all workers
};

struct DataSizes {
  std::int64_t train = 0;
  std::int64_t valid = 0;
  std::int64_t test = 0;
  std::int64_t width = 0;  // lr, fm: largest used row of the weights, plus 1; mlp: pixels of an image
  std::int64_t classes = 2;

  std::int64_t of(Part part) const noexcept {
    return part == Part::train ? train : part == Part::valid ? valid : test;
  }
};

/// One epoch over the worker's shares.
struct TrainTask {
  Shares shares;
  std::int64_t total = 0;  // examples in the training set
  std::int64_t epoch = 0;  // from 1
  std::int64_t batch = 0;  // maximum number of examples of each share in a step
  std::uint64_t seed = 0;
  Mode mode = Mode::asynchronous;
};

/// Sums over the examples of a task.
struct TrainResult {
  double log_loss = 0;
  double penalty = 0;
  std::int64_t examples = 0;
};

/// Scoring of the examples `first` to `first + count - 1` of a share.
struct EvaluateTask {
  Part part = Part::test;
  std::int64_t share = 0;
  std::int64_t total_shares = 1;  // number of shares of all workers
  std::int64_t first = 0;
  std::int64_t count = 0;
};

}  // namespace capstan::train

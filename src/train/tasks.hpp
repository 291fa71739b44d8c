// tasks.hpp -- arguments and results of the closures of lr, fm and mlp.
#pragma once

#include <cstdint>
#include <vector>

namespace capstan::train {

/// How far workers may drift apart: docs/consistency.md.
enum class Mode : std::uint8_t { asynchronous, stale_synchronous, synchronous };

/// The shares of the training data that one worker processes; see shares.hpp.
struct Shares {
  std::vector<std::int64_t> assigned = {};
  std::int64_t total_count = 1;  // number of shares of all workers
};

struct DataSizes {
  std::int64_t train = 0;
  std::int64_t test = 0;
  std::int64_t width = 0;  // lr, fm: largest used row of the weights, plus 1; mlp: pixels of an image
  std::int64_t classes = 2;
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
  bool test = true;  // true: held-out data; false: training data
  std::int64_t share = 0;
  std::int64_t total_shares = 1;  // number of shares of all workers
  std::int64_t first = 0;
  std::int64_t count = 0;
};

}  // namespace capstan::train

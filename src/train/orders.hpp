// orders.hpp -- what the coordinator of lr, fm and mlp asks of a worker, and what comes back.
#pragma once

#include <cstdint>
#include <vector>

namespace capstan::train {

/// How far workers may run apart: docs/consistency.md.
enum class Mode : std::uint8_t { asynchronous, stale_synchronous, synchronous };

/// Which examples a worker has: shares.hpp.
struct Shares {
  std::vector<std::int64_t> mine = {};
  std::int64_t all = 1;
};

struct DataSizes {
  std::int64_t train = 0;
  std::int64_t test = 0;
  std::int64_t width = 0;  // rows of the table, or pixels of an image
  std::int64_t classes = 2;
};

/// One epoch of some shares.
struct TrainOrder {
  Shares shares;
  std::int64_t total = 0;  // examples of all shares
  std::int64_t epoch = 0;  // from 1
  std::int64_t batch = 0;
  std::uint64_t seed = 0;
  Mode mode = Mode::asynchronous;
};

/// Sums over the examples.
struct TrainResult {
  double log_loss = 0;
  double penalty = 0;
  std::int64_t examples = 0;
};

/// Examples `first` to `first + count - 1` of a share.
struct EvaluateOrder {
  bool test = true;  // of the held-out data
  std::int64_t share = 0;
  std::int64_t shares = 1;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

}  // namespace capstan::train

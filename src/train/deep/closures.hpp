// closures.hpp -- closures of `capstan train deepfm`, `dlrm` and `dcn` on the workers. Examples are loaded
// and counted by the closures of lr and fm.
#pragma once

#include <vector>

#include "capstan/capstan.hpp"
#include "train/deep/deep_network.hpp"
#include "train/embedding_table.hpp"
#include "train/metrics.hpp"
#include "train/sparse/closures.hpp"
#include "train/tasks.hpp"

namespace capstan::train {

/// A worker's network and buffers. Used by one thread at a time.
struct DeepWorkerState {
  explicit DeepWorkerState(const DeepShape& shape) : network(shape) {}

  DeepNetwork network;
  SparseExamples batch;
  DeepValues values, gradient;
};
DeepWorkerState make_deep_worker_state(DeepShape shape);

// `Table` is Variable or DynamicTable. `parameters` holds DenseParameters.

/// For each batch: reads the rows that it uses and all parameters, and pushes their gradients. `occurrences`
/// has one element with an L2 penalty, else none.
template <template <class> class Table>
TrainResult train_deep(PerWorker<SparseWorkerState> data, PerWorker<DeepWorkerState> state, TrainTask task,
                       L2Penalty l2, UpdateGroup group, EmbeddingTable<Table> rows,
                       Variable<float> parameters, std::vector<Table<std::int32_t>> occurrences);
template <template <class> class Table>
Scores evaluate_deep(PerWorker<SparseWorkerState> data, PerWorker<DeepWorkerState> state, EvaluateTask task,
                     EmbeddingTable<Table> rows, Variable<float> parameters);

}  // namespace capstan::train

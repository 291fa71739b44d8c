// closures.cpp -- reads, gradients and pushes of the deep click models.
#include "train/deep/closures.hpp"

#include <map>

#include "train/epoch.hpp"
#include "train/sparse/batches.hpp"

namespace capstan::train {
namespace {

/// Reads the rows of the batch and the parameters at once.
template <class Table>
void read_values(DeepWorkerState& state, const SparseExamples& batch, const Table& rows,
                 const Variable<float>& parameters) {
  state.network.resize(batch, state.values);
  Pending pull = parameters.pull_async(0, state.values.parameters);
  rows.lookup(batch.ids, state.values.rows);
  pull.wait();
}

}  // namespace

DeepWorkerState make_deep_worker_state(DeepShape shape) { return DeepWorkerState(shape); }

template <template <class> class Table>
TrainResult train_deep(PerWorker<SparseWorkerState> data, PerWorker<DeepWorkerState> state, TrainTask task,
                       L2Penalty l2, UpdateGroup group, EmbeddingTable<Table> rows,
                       Variable<float> parameters, std::vector<Table<std::int32_t>> occurrences) {
  std::map<std::int64_t, BatchCutter> cutters = make_cutters(*data, task, occurrences);
  TrainResult result;
  run_epoch(task, group, [&](std::int64_t share, std::span<const std::uint32_t> chosen, double scale) {
    cutters.at(share).cut(chosen, state->batch);
    read_values(*state, state->batch, rows, parameters);
    const TrainResult sums =
        state->network.gradients(state->batch, state->values, scale, l2, state->gradient);
    rows.push(state->batch.ids, state->gradient.rows);
    parameters.push_dense(state->gradient.parameters);
    result.log_loss += sums.log_loss;
    result.penalty += sums.penalty;
    result.examples += sums.examples;
  });
  return result;
}

template <template <class> class Table>
Scores evaluate_deep(PerWorker<SparseWorkerState> data, PerWorker<DeepWorkerState> state, EvaluateTask task,
                     EmbeddingTable<Table> rows, Variable<float> parameters) {
  return score_batches(*data, task, [&](const SparseExamples& batch) {
    read_values(*state, batch, rows, parameters);
    return state->network.logits(batch, state->values);
  });
}

template TrainResult train_deep<Variable>(PerWorker<SparseWorkerState>, PerWorker<DeepWorkerState>, TrainTask,
                                          L2Penalty, UpdateGroup, EmbeddingTable<Variable>, Variable<float>,
                                          std::vector<Variable<std::int32_t>>);
template Scores evaluate_deep<Variable>(PerWorker<SparseWorkerState>, PerWorker<DeepWorkerState>,
                                        EvaluateTask, EmbeddingTable<Variable>, Variable<float>);
template TrainResult train_deep<DynamicTable>(PerWorker<SparseWorkerState>, PerWorker<DeepWorkerState>,
                                              TrainTask, L2Penalty, UpdateGroup, EmbeddingTable<DynamicTable>,
                                              Variable<float>, std::vector<DynamicTable<std::int32_t>>);
template Scores evaluate_deep<DynamicTable>(PerWorker<SparseWorkerState>, PerWorker<DeepWorkerState>,
                                            EvaluateTask, EmbeddingTable<DynamicTable>, Variable<float>);

}  // namespace capstan::train

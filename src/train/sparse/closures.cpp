// closures.cpp -- lookups, gradients and pushes of lr and fm.
#include "train/sparse/closures.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>

#include "train/epoch.hpp"
#include "train/sparse/batches.hpp"

namespace capstan::train {
namespace {

std::int64_t bias_id(const EmbeddingTable<Variable>& weights) {
  return static_cast<std::int64_t>(weights.rows()) - 1;
}
std::int64_t bias_id(const EmbeddingTable<DynamicTable>& /*weights*/) { return kBiasKey; }

/// Sets the ids of the batch's rows of `weights`; the bias is the last one.
template <class Table>
void set_weight_ids(SparseWorkerState& state, const SparseExamples& batch, const Table& weights) {
  state.weight_ids = batch.ids;
  if (state.machine.options().bias) state.weight_ids.push_back(bias_id(weights));
}

template <class Table>
void look_up(SparseWorkerState& state, const SparseExamples& batch, const Table& weights,
             const std::vector<Table>& factors) {
  set_weight_ids(state, batch, weights);
  state.machine.resize(batch, state.rows);
  if (factors.empty()) {
    weights.lookup(state.weight_ids, state.rows.weights);
  } else {
    Table::lookup_all({weights, state.weight_ids, state.rows.weights},
                      {factors.front(), batch.ids, state.rows.factors});
  }
}

template <class Table>
void push(SparseWorkerState& state, const SparseExamples& batch, const Table& weights,
          const std::vector<Table>& factors) {
  if (factors.empty()) {
    weights.push(state.weight_ids, state.gradients.weights);
  } else {
    Table::push_all({weights, state.weight_ids, state.gradients.weights},
                    {factors.front(), batch.ids, state.gradients.factors});
  }
}

}  // namespace

SparseFile& SparseWorkerState::share(Part part, std::int64_t share, std::int64_t shares) {
  const auto [at, inserted] = files_.try_emplace({part, share});
  if (inserted) {
    const auto& names = input_.files.of(part);
    try {
      at->second = read_share({names.begin(), names.end()}, input_.format, share, shares,
                              split_of(part, input_.files));
    } catch (...) {
      files_.erase(at);
      throw;
    }
  }
  return at->second;
}

Optimizer counting_optimizer() { return optimizers::SGD{.learning_rate = -1}; }

SparseWorkerState make_sparse_worker_state(SparseInput input) { return SparseWorkerState(std::move(input)); }

DataSizes load_sparse(PerWorker<SparseWorkerState> state, Shares shares) {
  DataSizes sizes;
  for (const std::int64_t share : shares.assigned) {
    const auto load = [&](Part part) {
      if (!state->has(part)) return std::int64_t{0};
      const SparseFile& file = state->share(part, share, shares.total_count);
      sizes.width = std::max(sizes.width, file.rows);
      return file.total;
    };
    sizes.train = load(Part::train);
    sizes.valid = load(Part::valid);
    sizes.test = load(Part::test);
  }
  return sizes;
}

template <template <class> class Table>
void count_sparse(PerWorker<SparseWorkerState> state, Shares shares, Table<std::int32_t> counts) {
  for (const std::int64_t share : shares.assigned) {
    const SparseExamples& examples = state->share(Part::train, share, shares.total_count).examples;
    if (!examples.ids.empty()) counts.push(examples.ids, occurrences(examples));
  }
}

template <template <class> class Table>
TrainResult train_sparse(PerWorker<SparseWorkerState> state, TrainTask task, L2Penalty l2, UpdateGroup group,
                         EmbeddingTable<Table> weights, std::vector<EmbeddingTable<Table>> factors,
                         std::vector<Table<std::int32_t>> occurrences) {
  std::map<std::int64_t, BatchCutter> cutters = make_cutters(*state, task, occurrences);
  TrainResult result;
  run_epoch(task, group, [&](std::int64_t share, std::span<const std::uint32_t> chosen, double scale) {
    const SparseExamples& all = state->share(Part::train, share, task.shares.total_count).examples;
    const bool full_batch = chosen.size() == all.size();  // the share itself is the batch
    if (!full_batch) cutters.at(share).cut(chosen, state->batch);
    const SparseExamples& batch = full_batch ? all : state->batch;
    look_up(*state, batch, weights, factors);
    const FmLoss loss = state->machine.gradients(batch, state->rows, l2, scale, state->gradients);
    push(*state, batch, weights, factors);
    result.log_loss += loss.log_loss;
    result.penalty += loss.penalty;
    result.examples += static_cast<std::int64_t>(chosen.size());
  });
  return result;
}

template <template <class> class Table>
Scores evaluate_sparse(PerWorker<SparseWorkerState> state, EvaluateTask task, EmbeddingTable<Table> weights,
                       std::vector<EmbeddingTable<Table>> factors) {
  return score_batches(*state, task, [&](const SparseExamples& batch) {
    look_up(*state, batch, weights, factors);
    state->machine.logits(batch, state->rows, state->logits);
    return std::span<const double>(state->logits);
  });
}

template void count_sparse<Variable>(PerWorker<SparseWorkerState>, Shares, Variable<std::int32_t>);
template TrainResult train_sparse<Variable>(PerWorker<SparseWorkerState>, TrainTask, L2Penalty, UpdateGroup,
                                            EmbeddingTable<Variable>, std::vector<EmbeddingTable<Variable>>,
                                            std::vector<Variable<std::int32_t>>);
template Scores evaluate_sparse<Variable>(PerWorker<SparseWorkerState>, EvaluateTask,
                                          EmbeddingTable<Variable>, std::vector<EmbeddingTable<Variable>>);
template void count_sparse<DynamicTable>(PerWorker<SparseWorkerState>, Shares, DynamicTable<std::int32_t>);
template TrainResult train_sparse<DynamicTable>(PerWorker<SparseWorkerState>, TrainTask, L2Penalty,
                                                UpdateGroup, EmbeddingTable<DynamicTable>,
                                                std::vector<EmbeddingTable<DynamicTable>>,
                                                std::vector<DynamicTable<std::int32_t>>);
template Scores evaluate_sparse<DynamicTable>(PerWorker<SparseWorkerState>, EvaluateTask,
                                              EmbeddingTable<DynamicTable>,
                                              std::vector<EmbeddingTable<DynamicTable>>);

}  // namespace capstan::train

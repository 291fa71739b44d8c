// closures.cpp -- lookups, gradients and pushes of lr and fm.
#include "train/sparse/closures.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "train/epoch.hpp"

namespace capstan::train {
namespace {

constexpr std::size_t kEvaluationExamples = 4096;

/// Sets the ids of the batch's rows of `weights`; the bias is the last one.
void set_weight_ids(SparseWorkerState& state, const SparseExamples& batch, const Variable<float>& weights) {
  state.weight_ids = batch.ids;
  if (state.machine.options().bias) {
    state.weight_ids.push_back(static_cast<std::int64_t>(weights.rows()) - 1);
  }
}

void look_up(SparseWorkerState& state, const SparseExamples& batch, const Variable<float>& weights,
             const std::vector<Variable<float>>& factors) {
  set_weight_ids(state, batch, weights);
  state.machine.resize(batch, state.rows);
  if (factors.empty()) {
    weights.lookup(state.weight_ids, state.rows.weights);
  } else {
    lookup_all(Lookup{weights, state.weight_ids, state.rows.weights},
               Lookup{factors.front(), batch.ids, state.rows.factors});
  }
}

void push(SparseWorkerState& state, const SparseExamples& batch, const Variable<float>& weights,
          const std::vector<Variable<float>>& factors) {
  if (factors.empty()) {
    weights.push(state.weight_ids, state.gradients.weights);
  } else {
    push_all(Push{weights, state.weight_ids, state.gradients.weights},
             Push{factors.front(), batch.ids, state.gradients.factors});
  }
}

void compute_rarity(SparseExamples& examples, std::int64_t total, const Variable<std::int32_t>& occurrences) {
  if (!examples.rarity.empty() || examples.ids.empty()) return;
  for (const std::int32_t count : occurrences.lookup(examples.ids).values) {
    examples.rarity.push_back(static_cast<float>(static_cast<double>(total) / count));
  }
}

}  // namespace

SparseFile& SparseWorkerState::share(bool test, std::int64_t share, std::int64_t shares) {
  const auto [at, inserted] = files_.try_emplace({test, share});
  if (inserted) {
    const auto& names = test ? input_.test : input_.train;
    try {
      at->second = read_share({names.begin(), names.end()}, input_.format, share, shares);
    } catch (...) {
      files_.erase(at);
      throw;
    }
  }
  return at->second;
}

SparseWorkerState make_sparse_worker_state(SparseInput input) { return SparseWorkerState(std::move(input)); }

DataSizes load_sparse(PerWorker<SparseWorkerState> state, Shares shares) {
  DataSizes sizes;
  for (const std::int64_t share : shares.assigned) {
    const SparseFile& train = state->share(false, share, shares.count);
    sizes.train = train.total;
    sizes.width = std::max(sizes.width, train.rows);
    if (!state->has_test()) continue;
    const SparseFile& test = state->share(true, share, shares.count);
    sizes.test = test.total;
    sizes.width = std::max(sizes.width, test.rows);
  }
  return sizes;
}

void count_sparse(PerWorker<SparseWorkerState> state, Shares shares, Variable<std::int32_t> counts) {
  for (const std::int64_t share : shares.assigned) {
    const SparseExamples& examples = state->share(false, share, shares.count).examples;
    if (!examples.ids.empty()) counts.scatter_add(examples.ids, occurrences(examples));
  }
}

TrainResult train_sparse(PerWorker<SparseWorkerState> state, TrainTask task, UpdateGroup group,
                         Variable<float> weights, std::vector<Variable<float>> factors,
                         std::vector<Variable<std::int32_t>> occurrences) {
  std::map<std::int64_t, BatchCutter> cutters;
  for (const std::int64_t share : task.shares.assigned) {
    SparseExamples& examples = state->share(false, share, task.shares.count).examples;
    if (!occurrences.empty()) compute_rarity(examples, task.total, occurrences.front());
    cutters.emplace(share, examples);
  }
  TrainResult result;
  run_epoch(task, group, [&](std::int64_t share, std::span<const std::uint32_t> which, double scale) {
    const SparseExamples& all = state->share(false, share, task.shares.count).examples;
    const bool full_batch = which.size() == all.size();  // the share itself is the batch
    if (!full_batch) cutters.at(share).cut(which, state->batch);
    const SparseExamples& batch = full_batch ? all : state->batch;
    look_up(*state, batch, weights, factors);
    const FmLoss loss = state->machine.gradients(batch, state->rows, scale, state->gradients);
    push(*state, batch, weights, factors);
    result.log_loss += loss.log_loss;
    result.penalty += loss.penalty;
    result.examples += static_cast<std::int64_t>(which.size());
  });
  return result;
}

Scores evaluate_sparse(PerWorker<SparseWorkerState> state, EvaluateTask task, Variable<float> weights,
                       std::vector<Variable<float>> factors) {
  const SparseExamples& examples = state->share(task.test, task.share, task.shares).examples;
  BatchCutter cutter(examples);
  std::vector<std::uint32_t> which(static_cast<std::size_t>(task.count));
  std::iota(which.begin(), which.end(), static_cast<std::uint32_t>(task.first));
  const std::span<const std::uint32_t> all(which);
  Scores scores;
  for (std::size_t first = 0; first < all.size(); first += kEvaluationExamples) {
    cutter.cut(all.subspan(first, std::min(kEvaluationExamples, all.size() - first)), state->batch);
    look_up(*state, state->batch, weights, factors);
    state->machine.logits(state->batch, state->rows, state->logits);
    for (std::size_t i = 0; i < state->batch.size(); ++i) {
      scores.add(state->logits[i], state->batch.labels[i] != 0);
    }
  }
  return scores;
}

}  // namespace capstan::train

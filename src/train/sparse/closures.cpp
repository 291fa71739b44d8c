// closures.cpp -- lookups, gradients and pushes of lr and fm.
#include "train/sparse/closures.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "train/epoch.hpp"

namespace capstan::train {
namespace {

constexpr std::size_t kExamplesAtOnce = 4096;  // examples

/// Rows of the weights for the batch: the bias is the last one.
void take_weight_ids(SparseShelf& shelf, const SparseExamples& batch, const Variable<float>& weights) {
  shelf.weight_ids = batch.ids;
  if (shelf.machine.options().bias) {
    shelf.weight_ids.push_back(static_cast<std::int64_t>(weights.rows()) - 1);
  }
}

void look_up(SparseShelf& shelf, const SparseExamples& batch, const Variable<float>& weights,
             const std::vector<Variable<float>>& factors) {
  take_weight_ids(shelf, batch, weights);
  shelf.machine.resize(batch, shelf.rows);
  if (factors.empty()) {
    weights.lookup(shelf.weight_ids, shelf.rows.weights);
  } else {
    lookup_all(Lookup{weights, shelf.weight_ids, shelf.rows.weights},
               Lookup{factors.front(), batch.ids, shelf.rows.factors});
  }
}

void push(SparseShelf& shelf, const SparseExamples& batch, const Variable<float>& weights,
          const std::vector<Variable<float>>& factors) {
  if (factors.empty()) {
    weights.push(shelf.weight_ids, shelf.gradients.weights);
  } else {
    push_all(Push{weights, shelf.weight_ids, shelf.gradients.weights},
             Push{factors.front(), batch.ids, shelf.gradients.factors});
  }
}

void weigh(SparseExamples& examples, std::int64_t total, const Variable<std::int32_t>& occurrences) {
  if (!examples.rarity.empty() || examples.ids.empty()) return;
  for (const std::int32_t count : occurrences.lookup(examples.ids).values) {
    examples.rarity.push_back(static_cast<float>(static_cast<double>(total) / count));
  }
}

}  // namespace

SparseFile& SparseShelf::share(bool test, std::int64_t share, std::int64_t shares) {
  const auto [at, fresh] = files_.try_emplace({test, share});
  if (fresh) {
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

SparseShelf make_sparse_shelf(SparseInput input) { return SparseShelf(std::move(input)); }

DataSizes load_sparse(PerWorker<SparseShelf> shelf, Shares shares) {
  DataSizes sizes;
  for (const std::int64_t share : shares.mine) {
    const SparseFile& train = shelf->share(false, share, shares.all);
    sizes.train = train.total;
    sizes.width = std::max(sizes.width, train.rows);
    if (!shelf->has_test()) continue;
    const SparseFile& test = shelf->share(true, share, shares.all);
    sizes.test = test.total;
    sizes.width = std::max(sizes.width, test.rows);
  }
  return sizes;
}

void count_sparse(PerWorker<SparseShelf> shelf, Shares shares, Variable<std::int32_t> counts) {
  for (const std::int64_t share : shares.mine) {
    const SparseExamples& examples = shelf->share(false, share, shares.all).examples;
    if (!examples.ids.empty()) counts.scatter_add(examples.ids, occurrences(examples));
  }
}

TrainResult train_sparse(PerWorker<SparseShelf> shelf, TrainOrder order, UpdateGroup group,
                         Variable<float> weights, std::vector<Variable<float>> factors,
                         std::vector<Variable<std::int32_t>> occurrences) {
  std::map<std::int64_t, BatchCutter> cutters;
  for (const std::int64_t share : order.shares.mine) {
    SparseExamples& examples = shelf->share(false, share, order.shares.all).examples;
    if (!occurrences.empty()) weigh(examples, order.total, occurrences.front());
    cutters.emplace(share, examples);
  }
  TrainResult result;
  run_epoch(order, group, [&](std::int64_t share, std::span<const std::uint32_t> which, double scale) {
    const SparseExamples& all = shelf->share(false, share, order.shares.all).examples;
    const bool whole = which.size() == all.size();  // a step of everything: nothing to cut
    if (!whole) cutters.at(share).cut(which, shelf->batch);
    const SparseExamples& batch = whole ? all : shelf->batch;
    look_up(*shelf, batch, weights, factors);
    const MachineLoss loss = shelf->machine.gradients(batch, shelf->rows, scale, shelf->gradients);
    push(*shelf, batch, weights, factors);
    result.log_loss += loss.log_loss;
    result.penalty += loss.penalty;
    result.examples += static_cast<std::int64_t>(which.size());
  });
  return result;
}

Scores evaluate_sparse(PerWorker<SparseShelf> shelf, EvaluateOrder order, Variable<float> weights,
                       std::vector<Variable<float>> factors) {
  const SparseExamples& examples = shelf->share(order.test, order.share, order.shares).examples;
  BatchCutter cutter(examples);
  std::vector<std::uint32_t> which(static_cast<std::size_t>(order.count));
  std::iota(which.begin(), which.end(), static_cast<std::uint32_t>(order.first));
  const std::span<const std::uint32_t> all(which);
  Scores scores;
  for (std::size_t first = 0; first < all.size(); first += kExamplesAtOnce) {
    cutter.cut(all.subspan(first, std::min(kExamplesAtOnce, all.size() - first)), shelf->batch);
    look_up(*shelf, shelf->batch, weights, factors);
    shelf->machine.logits(shelf->batch, shelf->rows, shelf->logits);
    for (std::size_t i = 0; i < shelf->batch.size(); ++i) {
      scores.add(shelf->logits[i], shelf->batch.labels[i] != 0);
    }
  }
  return scores;
}

}  // namespace capstan::train

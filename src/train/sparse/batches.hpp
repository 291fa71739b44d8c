// batches.hpp -- batches of a worker's shares for training and evaluation, independent of the click model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "train/metrics.hpp"
#include "train/sparse/closures.hpp"
#include "train/sparse/examples.hpp"
#include "train/tasks.hpp"

namespace capstan::train {

/// Examples that are scored at once; bounds the buffers.
inline constexpr std::size_t kScoredExamples = 4096;

/// Returns a cutter for each share of the task, after setting the share's rarities. `occurrences` has one
/// element with an L2 penalty, else none.
template <class Counts>
std::map<std::int64_t, BatchCutter> make_cutters(SparseWorkerState& data, const TrainTask& task,
                                                 const std::vector<Counts>& occurrences) {
  std::map<std::int64_t, BatchCutter> cutters;
  for (const std::int64_t share : task.shares.assigned) {
    SparseExamples& examples = data.share(Part::train, share, task.shares.total_count).examples;
    if (!occurrences.empty()) set_rarity(examples, task.total, occurrences.front());
    cutters.emplace(share, examples);
  }
  return cutters;
}

/// Scores the examples of the task. logits_of(batch) returns a logit per example. Uses data.batch.
template <class LogitsOf>
Scores score_batches(SparseWorkerState& data, const EvaluateTask& task, const LogitsOf& logits_of) {
  const SparseExamples& examples = data.share(task.part, task.share, task.total_shares).examples;
  BatchCutter cutter(examples);
  std::vector<std::uint32_t> chosen(static_cast<std::size_t>(task.count));
  std::iota(chosen.begin(), chosen.end(), static_cast<std::uint32_t>(task.first));
  const std::span<const std::uint32_t> all(chosen);
  Scores scores;
  for (std::size_t first = 0; first < all.size(); first += kScoredExamples) {
    cutter.cut(all.subspan(first, std::min(kScoredExamples, all.size() - first)), data.batch);
    const auto logits = logits_of(data.batch);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      scores.add(static_cast<double>(logits[i]), data.batch.labels[i] != 0);
    }
  }
  return scores;
}

}  // namespace capstan::train

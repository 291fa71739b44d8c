// rank_metrics.hpp -- quality of a model by the ranks of correct answers, and the options of a ranker.
#pragma once

#include <cstdint>
#include <span>

#include "train/kge/model.hpp"

namespace capstan::kge {

/// Sums over queries, so that slices ranked on different workers can be merged.
struct Metrics {
  double mrr_sum = 0;
  double hits1_sum = 0;
  double hits3_sum = 0;
  double hits10_sum = 0;
  std::int64_t count = 0;  // queries: two per triple
  double tails_mrr_sum = 0;
  std::int64_t tails_count = 0;  // queries for tails, also included in `count`

  void add_rank(double rank) noexcept;
  /// Adds the ranks of the tails of some triples, then of their heads.
  void add_ranks(std::span<const double> tails_and_heads) noexcept;
  void merge(const Metrics& other) noexcept;

  double mrr() const noexcept { return count == 0 ? 0 : mrr_sum / static_cast<double>(count); }
  double tails_mrr() const noexcept {
    return tails_count == 0 ? 0 : tails_mrr_sum / static_cast<double>(tails_count);
  }
  double hits1() const noexcept { return count == 0 ? 0 : hits1_sum / static_cast<double>(count); }
  double hits3() const noexcept { return count == 0 ? 0 : hits3_sum / static_cast<double>(count); }
  double hits10() const noexcept { return count == 0 ? 0 : hits10_sum / static_cast<double>(count); }
};

/// Expected MRR of a model that orders the entities at random: the mean of 1/rank over all ranks.
double mrr_of_random_guessing(std::int64_t entities) noexcept;

struct RankerOptions {
  ModelKind model = ModelKind::complex;
  int dim = 256;
  std::int64_t entities = 0;
  std::int64_t relations = 0;  // in the graph; the relation table has twice as many rows
};

}  // namespace capstan::kge

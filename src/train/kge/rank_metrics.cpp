// rank_metrics.cpp -- see rank_metrics.hpp.
#include "train/kge/rank_metrics.hpp"

namespace capstan::kge {

void Metrics::add_rank(double rank) noexcept {
  mrr_sum += 1 / rank;
  hits1_sum += rank <= 1;
  hits3_sum += rank <= 3;
  hits10_sum += rank <= 10;
  ++count;
}

void Metrics::add_ranks(std::span<const double> tails_and_heads) noexcept {
  for (const double rank : tails_and_heads) add_rank(rank);
  for (const double rank : tails_and_heads.first(tails_and_heads.size() / 2)) tails_mrr_sum += 1 / rank;
  tails_count += static_cast<std::int64_t>(tails_and_heads.size() / 2);
}

void Metrics::merge(const Metrics& other) noexcept {
  mrr_sum += other.mrr_sum;
  hits1_sum += other.hits1_sum;
  hits3_sum += other.hits3_sum;
  hits10_sum += other.hits10_sum;
  count += other.count;
  tails_mrr_sum += other.tails_mrr_sum;
  tails_count += other.tails_count;
}

double mrr_of_random_guessing(std::int64_t entities) noexcept {
  double harmonic = 0;
  for (std::int64_t rank = entities; rank > 0; --rank) harmonic += 1 / static_cast<double>(rank);
  return entities > 0 ? harmonic / static_cast<double>(entities) : 0;
}

}  // namespace capstan::kge

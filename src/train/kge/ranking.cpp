// ranking.cpp -- see ranking.hpp.
//
// A matrix product may round the scores of two identical rows differently, depending on their position in the
// block. Candidates within rounding error of the answer's score, about 10 of 40,000, are therefore scored
// again. The new score is a sum in double, which is the same for identical rows.
#include "train/kge/ranking.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.hpp"
#include "train/blas.hpp"
#include "train/kge/kernels.hpp"

namespace capstan::kge {
namespace {

constexpr std::size_t kQueryBlock = 256;  // 256 x 1,024 scores take 1 MiB: the L2 cache of a core
constexpr std::size_t kChunkRows = 1024;
constexpr std::size_t kModuliChunkRows = 16;  // stay in the L1 cache while all queries of a block read them

constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kExcluded = -std::numeric_limits<float>::infinity();  // below every threshold

float to_threshold(double value) noexcept {
  return static_cast<float>(std::clamp(value, double{kLowest}, -double{kLowest}));
}

}  // namespace

Ranker::Ranker(const RankerOptions& options, const TrueAnswers& true_answers)
    : options_(options),
      comparison_(comparison_of(options.model)),
      dim_(static_cast<std::size_t>(options.dim)),
      relation_width_(static_cast<std::size_t>(relation_width(options.model, options.dim))),
      true_answers_(&true_answers) {
  CAPSTAN_ASSERT(options.dim > 0 && options.entities > 0 && options.relations > 0);
  train::use_one_blas_thread();
  scores_.resize(kQueryBlock * kChunkRows);
  negated_squares_.resize(kChunkRows);
}

void Ranker::plan(std::span<const Triple> slice) {
  CAPSTAN_ASSERT(!slice.empty());
  const std::size_t size = slice.size();
  entity_occurrences_.resize(2 * size);
  relation_occurrences_.resize(2 * size);
  queries_.resize(2 * size);
  for (std::size_t i = 0; i < size; ++i) {
    const Triple& triple = slice[i];
    const auto reciprocal = static_cast<std::int32_t>(triple.relation + options_.relations);
    entity_occurrences_[i] = triple.head;
    entity_occurrences_[size + i] = triple.tail;
    relation_occurrences_[i] = triple.relation;
    relation_occurrences_[size + i] = reciprocal;
    queries_[i] = {.answer = triple.tail, .known = true_answers_->of(triple.head, triple.relation)};
    queries_[size + i] = {.answer = triple.head, .known = true_answers_->of(triple.tail, reciprocal)};
  }
  entity_index_.build(entity_occurrences_);
  relation_index_.build(relation_occurrences_);
}

void Ranker::begin(std::span<const float> entity_rows, std::span<const float> relation_rows) {
  CAPSTAN_ASSERT(entity_rows.size() == entity_ids().size() * dim_);
  CAPSTAN_ASSERT(relation_rows.size() == relation_ids().size() * relation_width_);
  const std::size_t size = queries_.size() / 2;
  const auto entity_row = [&](std::size_t use) {
    return entity_rows.data() + static_cast<std::size_t>(entity_index_.positions()[use]) * dim_;
  };
  query_rows_.resize(queries_.size() * dim_);
  for (std::size_t i = 0; i < queries_.size(); ++i) {
    float* query = query_rows_.data() + i * dim_;
    const float* relation =
        relation_rows.data() + static_cast<std::size_t>(relation_index_.positions()[i]) * relation_width_;
    make_query(options_.model, entity_row(i), relation, query, dim_);
    queries_[i].answer_score = exact_score(query, entity_row(i < size ? i + size : i - size));
    queries_[i].norm = std::sqrt(dot(query, query, dim_));
    queries_[i].better = 0;
    queries_[i].equal = 0;
  }
  entities_seen_ = 0;
}

void Ranker::add_block(std::int64_t first_id, std::span<const float> rows) {
  CAPSTAN_ASSERT(rows.size() % dim_ == 0);
  const std::size_t total = rows.size() / dim_;
  CAPSTAN_ASSERT(first_id >= 0 && first_id + static_cast<std::int64_t>(total) <= options_.entities);
  for (std::size_t row = 0; row < total; row += kChunkRows) {
    add_chunk(first_id + static_cast<std::int64_t>(row), rows.data() + row * dim_,
              std::min(kChunkRows, total - row));
  }
  entities_seen_ += static_cast<std::int64_t>(total);
}

void Ranker::add_chunk(std::int64_t first_id, const float* rows, std::size_t count) {
  float largest_square = 0;
  for (std::size_t j = 0; j < count; ++j) {
    const float square = dot(rows + j * dim_, rows + j * dim_, dim_);
    negated_squares_.data()[j] = -square;
    largest_square = std::max(largest_square, square);
  }
  const float largest_norm = std::sqrt(largest_square);

  for (std::size_t first = 0; first < queries_.size(); first += kQueryBlock) {
    const std::size_t block = std::min(kQueryBlock, queries_.size() - first);
    score_chunk(first, block, rows, count);
    for (std::size_t i = 0; i < block; ++i) {
      count_chunk(queries_[first + i], query_rows_.data() + (first + i) * dim_, scores_.data() + i * count,
                  first_id, rows, count, largest_norm);
    }
  }
}

/// Computes q . c, or for distances 2 q . c - |c|^2 = |q|^2 - distance^2, which has the order of the negative
/// distance.
void Ranker::score_chunk(std::size_t first_query, std::size_t block, const float* rows, std::size_t count) {
  const float* queries = query_rows_.data() + first_query * dim_;
  if (comparison_ == Comparison::moduli) {
    for (std::size_t j = 0; j < count; j += kModuliChunkRows) {
      for (std::size_t i = 0; i < block; ++i) {
        moduli_scores(queries + i * dim_, rows + j * dim_, std::min(kModuliChunkRows, count - j),
                      scores_.data() + i * count + j, dim_);
      }
    }
    return;
  }
  const bool distances = comparison_ == Comparison::distance;
  if (distances) {
    for (std::size_t i = 0; i < block; ++i) {
      std::copy_n(negated_squares_.data(), count, scores_.data() + i * count);
    }
  }
  train::multiply(train::Transposed::no, train::Transposed::yes, block, count, dim_, distances ? 2.0F : 1.0F,
                  queries, dim_, rows, dim_, distances ? 1.0F : 0.0F, scores_.data(), count);
}

/// Returns twice the classical error bound of a sum in any order, for scores close to the answer's.
double Ranker::rounding_margin(const Query& query, float largest_norm) const noexcept {
  const double rounding = 2 * static_cast<double>(dim_ + 8) * 0x1p-24;
  const double product = double{query.norm} * largest_norm;
  switch (comparison_) {
    case Comparison::distance:
      return rounding * (2 * product + double{largest_norm} * largest_norm);
    case Comparison::moduli:
      return rounding * std::abs(query.answer_score);  // a sum of terms of one sign
    case Comparison::product:
      break;
  }
  return rounding * product;
}

void Ranker::count_chunk(Query& query, const float* query_row, float* scores, std::int64_t first_id,
                         const float* rows, std::size_t count, float largest_norm) const {
  const auto exclude = [&](std::int32_t id) {
    if (id >= first_id && id < first_id + static_cast<std::int64_t>(count)) scores[id - first_id] = kExcluded;
  };
  exclude(query.answer);
  const auto last_id = first_id + static_cast<std::int64_t>(count);
  for (auto id = std::ranges::lower_bound(query.known, first_id); id != query.known.end() && *id < last_id;
       ++id) {
    exclude(*id);
  }

  float low = kLowest, high = kLowest;  // a NaN answer ranks last: every entity counts as better
  if (!std::isnan(query.answer_score)) {
    const double margin = rounding_margin(query, largest_norm);
    low = to_threshold(query.answer_score - margin);
    high = to_threshold(query.answer_score + margin);
  }
  const ScoreCounts counts = count_scores(scores, count, low, high);
  query.better += static_cast<std::int64_t>(counts.above_high);
  if (counts.from_low == counts.above_high) return;

  for (std::size_t j = 0; j < count; ++j) {
    if (!(scores[j] >= low && scores[j] <= high)) continue;
    const double score = exact_score(query_row, rows + j * dim_);
    query.better += score > query.answer_score;
    query.equal += score == query.answer_score;
  }
}

/// Not inlined: two copies could be compiled to different roundings, and equal rows would not tie.
[[gnu::noinline]] double Ranker::exact_score(const float* query, const float* row) const noexcept {
  if (comparison_ == Comparison::moduli) {
    const std::size_t half = dim_ / 2;
    double sum = 0;
    for (std::size_t i = 0; i < half; ++i) {
      const double re = double{query[i]} - row[i], im = double{query[half + i]} - row[half + i];
      sum += std::sqrt(re * re + im * im);
    }
    return -sum;
  }
  double product = 0, square = 0;
  for (std::size_t i = 0; i < dim_; ++i) {
    product += double{query[i]} * row[i];
    square += double{row[i]} * row[i];
  }
  return comparison_ == Comparison::distance ? 2 * product - square : product;
}

Metrics Ranker::finish() {
  CAPSTAN_ASSERT(entities_seen_ == options_.entities);
  std::vector<double> ranks;
  ranks.reserve(queries_.size());
  for (const Query& query : queries_) {
    ranks.push_back(1 + static_cast<double>(query.better) + static_cast<double>(query.equal) / 2);
  }
  Metrics metrics;
  metrics.add_ranks(ranks);
  return metrics;
}

}  // namespace capstan::kge

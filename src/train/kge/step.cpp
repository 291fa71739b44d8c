// step.cpp -- see step.hpp. Three matrix products per block of queries take 90% of the time.
#include "train/kge/step.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.hpp"
#include "train/blas.hpp"

namespace capstan::kge {
namespace {

/// 256 queries x 1,024 negatives are 1 MiB of scores: the L2 cache of a core.
constexpr std::size_t kBlock = 256;

/// Below any real score; its exponential is exactly 0.
constexpr float kMasked = -1e30F;

}  // namespace

Step::Step(const StepOptions& options)
    : plan_(options),
      model_(options.model),
      dim_(static_cast<std::size_t>(options.dim)),
      negative_count_(static_cast<std::size_t>(options.negatives)) {
  train::use_one_blas_thread();
  queries_.resize(kBlock * dim_);
  query_gradients_.resize(kBlock * dim_);
  scores_.resize(kBlock * negative_count_);
  softmax_.resize(kBlock);
  negatives_.resize(negative_count_ * dim_);
  negative_gradients_.resize(negative_count_ * dim_);
  negative_norms_.resize(negative_count_);
  negative_weights_.resize(negative_count_);
}

void Step::plan(std::span<const Triple> batch, std::uint64_t seed, std::uint64_t batch_number) {
  plan_.draw(batch, seed, batch_number);
  first_negative_.assign(entity_ids().size(), -1);
  next_negative_.resize(negative_count_);
  for (std::size_t j = 0; j < negative_count_; ++j) {
    const auto position = static_cast<std::size_t>(plan_.negative_positions()[j]);
    next_negative_[j] = std::exchange(first_negative_[position], static_cast<std::int32_t>(j));
  }
}

Loss Step::compute(std::span<const float> entity_rows, std::span<const float> relation_rows) {
  CAPSTAN_ASSERT(plan_.queries() > 0);
  CAPSTAN_ASSERT(entity_rows.size() == entity_ids().size() * dim_);
  CAPSTAN_ASSERT(relation_rows.size() == relation_ids().size() * dim_);
  const Rows rows{entity_rows.data(), relation_rows.data()};
  entity_gradients_.resize(entity_rows.size());
  relation_gradients_.resize(relation_rows.size());
  std::ranges::fill(entity_gradients_.span(), 0.0F);
  std::ranges::fill(relation_gradients_.span(), 0.0F);

  Loss loss{.sum = 0, .count = static_cast<std::int64_t>(plan_.queries())};
  gather_negatives(rows);
  for (std::size_t first = 0; first < plan_.queries(); first += kBlock) {
    const std::size_t count = std::min(kBlock, plan_.queries() - first);
    make_queries(rows, first, count);
    loss.sum += weigh_candidates(rows, first, count);
    multiply_gradients(first, count);
    add_query_side(rows, first, count);
  }
  add_negative_side();
  if (options().n3 > 0) add_penalty(rows);
  return loss;
}

void Step::gather_negatives(Rows rows) {
  const auto positions = plan_.negative_positions();
  for (std::size_t j = 0; j < negative_count_; ++j) {
    const float* row = rows.entities + static_cast<std::size_t>(positions[j]) * dim_;
    std::copy_n(row, dim_, negatives_.data() + j * dim_);
    if (model_ == ModelKind::transe) negative_norms_.data()[j] = dot(row, row, dim_);
  }
  std::ranges::fill(negative_weights_.span(), 0.0F);
}

void Step::make_queries(Rows rows, std::size_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    make_query(model_, rows.entities + plan_.source(first + i) * dim_,
               rows.relations + plan_.relation(first + i) * dim_, queries_.data() + i * dim_, dim_);
  }
}

/// Computes the weights of the negatives and answers of a block of queries; returns the sum of the losses.
double Step::weigh_candidates(Rows rows, std::size_t first, std::size_t count) {
  train::multiply(train::Transposed::no, train::Transposed::yes, count, negative_count_, dim_, 1,
                  queries_.data(), dim_, negatives_.data(), dim_, 0, scores_.data(), negative_count_);
  const float correction = logit_correction(options());
  double loss = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float* query = queries_.data() + i * dim_;
    const float* answer_row = rows.entities + plan_.answer(first + i) * dim_;
    float* scores = scores_.data() + i * negative_count_;
    for (std::int32_t j = first_negative_[plan_.answer(first + i)]; j >= 0;
         j = next_negative_[static_cast<std::size_t>(j)]) {
      scores[j] = kMasked;
    }
    if (model_ == ModelKind::transe) {
      const float distance = std::sqrt(squared_distance(query, answer_row, dim_));
      softmax_[i] =
          softmax_distances(scores, negative_count_, negative_norms_.data(), dot(query, query, dim_),
                            distance, correction, negative_weights_.data());
    } else {
      softmax_[i] = softmax_scores(scores, negative_count_, dot(query, answer_row, dim_), correction);
    }
    loss += softmax_[i].loss;
  }
  return loss;
}

void Step::multiply_gradients(std::size_t first, std::size_t count) {
  train::multiply(train::Transposed::no, train::Transposed::no, count, dim_, negative_count_, 1,
                  scores_.data(), negative_count_, negatives_.data(), dim_, 0, query_gradients_.data(), dim_);
  train::multiply(train::Transposed::yes, train::Transposed::no, negative_count_, dim_, count, 1,
                  scores_.data(), negative_count_, queries_.data(), dim_, first == 0 ? 0.0F : 1.0F,
                  negative_gradients_.data(), dim_);
}

/// Adds the gradients of the answers and, through the queries, of their entities and relations.
void Step::add_query_side(Rows rows, std::size_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const SoftmaxResult& softmax = softmax_[i];
    const float* query = queries_.data() + i * dim_;
    float* query_gradient = query_gradients_.data() + i * dim_;
    const float* answer_row = rows.entities + plan_.answer(first + i) * dim_;
    float* answer_gradient = entity_gradients_.data() + plan_.answer(first + i) * dim_;

    add_scaled(softmax.positive_weight, answer_row, query_gradient, dim_);
    add_scaled(softmax.positive_weight, query, answer_gradient, dim_);
    if (model_ == ModelKind::transe) {
      add_scaled(-softmax.weight_sum, query, query_gradient, dim_);
      add_scaled(-softmax.positive_weight, answer_row, answer_gradient, dim_);
    }
    add_query_gradients(model_, rows.entities + plan_.source(first + i) * dim_,
                        rows.relations + plan_.relation(first + i) * dim_, query_gradient,
                        entity_gradients_.data() + plan_.source(first + i) * dim_,
                        relation_gradients_.data() + plan_.relation(first + i) * dim_, dim_);
  }
}

void Step::add_negative_side() {
  const auto positions = plan_.negative_positions();
  for (std::size_t j = 0; j < negative_count_; ++j) {
    float* gradient = entity_gradients_.data() + static_cast<std::size_t>(positions[j]) * dim_;
    add_scaled(1, negative_gradients_.data() + j * dim_, gradient, dim_);
    if (model_ == ModelKind::transe) {
      add_scaled(-negative_weights_.data()[j], negatives_.data() + j * dim_, gradient, dim_);
    }
  }
}

/// The penalty counts the three rows of every query. A triple has two queries, so its entities count twice.
void Step::add_penalty(Rows rows) {
  const auto add = [&](std::span<const std::int32_t> positions, std::size_t unique, float per_use,
                       const float* from, float* gradients) {
    use_counts_.assign(unique, 0);
    for (const std::int32_t position : positions) ++use_counts_[static_cast<std::size_t>(position)];
    for (std::size_t position = 0; position < unique; ++position) {
      if (use_counts_[position] == 0) continue;
      const float factor = per_use * static_cast<float>(use_counts_[position]);
      add_cubic_penalty(model_, factor, from + position * dim_, gradients + position * dim_, dim_);
    }
  };
  const float slope = 3 * options().n3;  // the derivative of n3 * |z|^3 is slope * |z| * z
  add(plan_.entity_positions().first(plan_.queries()), entity_ids().size(), 2 * slope, rows.entities,
      entity_gradients_.data());
  add(plan_.relation_positions(), relation_ids().size(), slope, rows.relations, relation_gradients_.data());
}

}  // namespace capstan::kge

// step.cpp -- see step.hpp. Three matrix products per block of queries take 90% of the time, or the moduli in
// their place.
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

/// Negatives whose moduli are computed for all queries of a block before the next ones: these rows and their
/// gradients stay in the L1 cache.
constexpr std::size_t kModuliRows = 8;

}  // namespace

Step::Step(const StepOptions& options)
    : plan_(options),
      model_(options.model),
      comparison_(comparison_of(options.model)),
      dim_(static_cast<std::size_t>(options.dim)),
      relation_width_(static_cast<std::size_t>(relation_width(options.model, options.dim))),
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
  CAPSTAN_ASSERT(relation_rows.size() == relation_ids().size() * relation_width_);
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
    if (comparison_ == Comparison::distance) negative_norms_.data()[j] = dot(row, row, dim_);
  }
  std::ranges::fill(negative_weights_.span(), 0.0F);
}

void Step::make_queries(Rows rows, std::size_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    make_query(model_, rows.entities + plan_.source(first + i) * dim_, relation_row(rows, first + i),
               queries_.data() + i * dim_, dim_);
  }
}

/// Computes the weights of the negatives and answers of a block of queries; returns the sum of the losses.
double Step::weigh_candidates(Rows rows, std::size_t first, std::size_t count) {
  score_negatives(count);
  double loss = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float* answer_row = rows.entities + plan_.answer(first + i) * dim_;
    float* scores = scores_.data() + i * negative_count_;
    for (std::int32_t j = first_negative_[plan_.answer(first + i)]; j >= 0;
         j = next_negative_[static_cast<std::size_t>(j)]) {
      scores[j] = kMasked;
    }
    softmax_[i] = weigh_query(i, answer_row);
    loss += softmax_[i].loss;
  }
  return loss;
}

/// Computes the products of a block of queries and the negatives, or the scores by moduli.
void Step::score_negatives(std::size_t count) {
  if (comparison_ != Comparison::moduli) {
    train::multiply(train::Transposed::no, train::Transposed::yes, count, negative_count_, dim_, 1,
                    queries_.data(), dim_, negatives_.data(), dim_, 0, scores_.data(), negative_count_);
    return;
  }
  for (std::size_t j = 0; j < negative_count_; j += kModuliRows) {
    for (std::size_t i = 0; i < count; ++i) {
      moduli_scores(queries_.data() + i * dim_, negatives_.data() + j * dim_,
                    std::min(kModuliRows, negative_count_ - j), scores_.data() + i * negative_count_ + j,
                    dim_);
    }
  }
}

/// Replaces the scores of a query of the block by the weights of the negatives.
SoftmaxResult Step::weigh_query(std::size_t query, const float* answer_row) {
  const float* row = queries_.data() + query * dim_;
  float* scores = scores_.data() + query * negative_count_;
  const float correction = logit_correction(options());
  switch (comparison_) {
    case Comparison::distance:
      return softmax_distances(scores, negative_count_, negative_norms_.data(), dot(row, row, dim_),
                               std::sqrt(squared_distance(row, answer_row, dim_)), correction,
                               negative_weights_.data());
    case Comparison::moduli: {
      float positive = 0;
      moduli_scores(row, answer_row, 1, &positive, dim_);
      if (options().margin > 0)
        return self_adversarial_scores(scores, negative_count_, positive, options().margin);
      return softmax_scores(scores, negative_count_, positive, correction);
    }
    case Comparison::product:
      break;
  }
  return softmax_scores(scores, negative_count_, dot(row, answer_row, dim_), correction);
}

void Step::multiply_gradients(std::size_t first, std::size_t count) {
  if (comparison_ == Comparison::moduli) {
    std::fill_n(query_gradients_.data(), count * dim_, 0.0F);
    if (first == 0) std::ranges::fill(negative_gradients_.span(), 0.0F);
    for (std::size_t j = 0; j < negative_count_; j += kModuliRows) {
      for (std::size_t i = 0; i < count; ++i) {
        add_moduli_gradients(scores_.data() + i * negative_count_ + j, queries_.data() + i * dim_,
                             negatives_.data() + j * dim_, std::min(kModuliRows, negative_count_ - j),
                             query_gradients_.data() + i * dim_, negative_gradients_.data() + j * dim_, dim_);
      }
    }
    return;
  }
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

    if (comparison_ == Comparison::moduli) {
      add_moduli_gradients(&softmax.positive_weight, query, answer_row, 1, query_gradient, answer_gradient,
                           dim_);
    } else {
      add_scaled(softmax.positive_weight, answer_row, query_gradient, dim_);
      add_scaled(softmax.positive_weight, query, answer_gradient, dim_);
    }
    if (comparison_ == Comparison::distance) {
      add_scaled(-softmax.weight_sum, query, query_gradient, dim_);
      add_scaled(-softmax.positive_weight, answer_row, answer_gradient, dim_);
    }
    add_query_gradients(model_, rows.entities + plan_.source(first + i) * dim_, relation_row(rows, first + i),
                        query_gradient, entity_gradients_.data() + plan_.source(first + i) * dim_,
                        relation_gradients_.data() + plan_.relation(first + i) * relation_width_, dim_);
  }
}

void Step::add_negative_side() {
  const auto positions = plan_.negative_positions();
  for (std::size_t j = 0; j < negative_count_; ++j) {
    float* gradient = entity_gradients_.data() + static_cast<std::size_t>(positions[j]) * dim_;
    add_scaled(1, negative_gradients_.data() + j * dim_, gradient, dim_);
    if (comparison_ == Comparison::distance) {
      add_scaled(-negative_weights_.data()[j], negatives_.data() + j * dim_, gradient, dim_);
    }
  }
}

/// The penalty counts the three rows of every query. A triple has two queries, so its entities count twice.
void Step::add_penalty(Rows rows) {
  const auto add = [&](std::span<const std::int32_t> positions, std::size_t unique, float per_use,
                       const float* from, float* gradients, std::size_t width) {
    use_counts_.assign(unique, 0);
    for (const std::int32_t position : positions) ++use_counts_[static_cast<std::size_t>(position)];
    for (std::size_t position = 0; position < unique; ++position) {
      if (use_counts_[position] == 0) continue;
      const float factor = per_use * static_cast<float>(use_counts_[position]);
      add_cubic_penalty(model_, factor, from + position * width, gradients + position * width, width);
    }
  };
  const float slope = 3 * options().n3;  // the derivative of n3 * |z|^3 is slope * |z| * z
  add(plan_.entity_positions().first(plan_.queries()), entity_ids().size(), 2 * slope, rows.entities,
      entity_gradients_.data(), dim_);
  add(plan_.relation_positions(), relation_ids().size(), slope, rows.relations, relation_gradients_.data(),
      relation_width_);
}

}  // namespace capstan::kge

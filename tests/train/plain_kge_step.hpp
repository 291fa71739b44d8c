// plain_kge_step.hpp -- loss and gradients of a batch by definition: in double, one candidate at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "train/counter_rng.hpp"
#include "train/kge/batch_plan.hpp"

namespace capstan::kge {

/// Uses complete tables, indexed by id.
class PlainStep {
 public:
  PlainStep(const StepOptions& options, std::vector<double> entities, std::vector<double> relations)
      : options_(options),
        dim_(static_cast<std::size_t>(options.dim)),
        entities_(std::move(entities)),
        relations_(std::move(relations)),
        entity_gradients(entities_.size()),
        relation_gradients(relations_.size()) {}

  void run(std::span<const Triple> batch, std::uint64_t seed, std::uint64_t number) {
    const train::CounterRng random(seed, number);
    negatives_.clear();
    for (int j = 0; j < options_.negatives; ++j) {
      negatives_.push_back(
          random.below(static_cast<std::uint64_t>(options_.entities), static_cast<std::uint64_t>(j)));
    }
    const auto relations = static_cast<std::size_t>(options_.relations);
    for (const Triple& t : batch) {
      const auto head = static_cast<std::size_t>(t.head), tail = static_cast<std::size_t>(t.tail);
      const auto relation = static_cast<std::size_t>(t.relation);
      add_query(head, relation, tail);
      add_query(tail, relation + relations, head);
    }
  }

 private:
  StepOptions options_;
  std::size_t dim_;
  std::vector<double> entities_, relations_;
  std::vector<std::uint64_t> negatives_;

 public:
  double loss = 0;
  std::vector<double> entity_gradients, relation_gradients;

 private:
  bool is_complex() const { return options_.model == ModelKind::complex; }
  bool is_distance() const { return options_.model == ModelKind::transe; }

  double score(const std::vector<double>& query, const double* row) const {
    double sum = 0;
    for (std::size_t i = 0; i < dim_; ++i) {
      sum += is_distance() ? (query[i] - row[i]) * (query[i] - row[i]) : query[i] * row[i];
    }
    return is_distance() ? -std::sqrt(sum) : sum;
  }

  void add_query(std::size_t source, std::size_t relation, std::size_t answer) {
    const double* const h = &entities_[source * dim_];
    const double* const r = &relations_[relation * dim_];
    const std::size_t half = dim_ / 2;
    std::vector<double> query(dim_), slope(dim_);
    for (std::size_t i = 0; i < dim_; ++i) {
      if (is_complex()) {
        query[i] =
            i < half ? h[i] * r[i] - h[i + half] * r[i + half] : h[i - half] * r[i] + h[i] * r[i - half];
      } else {
        query[i] = is_distance() ? h[i] + r[i] : h[i] * r[i];
      }
    }
    // The answer first, then the negatives that are not the answer.
    std::vector<std::size_t> candidates{answer};
    for (const auto negative : negatives_) {
      if (negative != answer) candidates.push_back(negative);
    }
    std::vector<double> logits;
    const double correction =
        std::log(static_cast<double>(options_.entities - 1) / static_cast<double>(options_.negatives));
    for (const std::size_t candidate : candidates) {
      logits.push_back(score(query, &entities_[candidate * dim_]) + (logits.empty() ? 0 : correction));
    }
    const double largest = *std::ranges::max_element(logits);
    double total = 0;
    for (const double logit : logits) total += std::exp(logit - largest);
    loss += std::log(total) + largest - logits[0];
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      const double by_logit = std::exp(logits[c] - largest) / total - (c == 0 ? 1 : 0);
      const double* const row = &entities_[candidates[c] * dim_];
      double* const gradient = &entity_gradients[candidates[c] * dim_];
      const double distance = is_distance() ? std::max(-score(query, row), 1e-6) : 1;
      for (std::size_t i = 0; i < dim_; ++i) {
        slope[i] += by_logit * (is_distance() ? (row[i] - query[i]) / distance : row[i]);
        gradient[i] += by_logit * (is_distance() ? (query[i] - row[i]) / distance : query[i]);
      }
    }
    add_to_rows(source, relation, slope);
    if (options_.n3 > 0) {
      add_penalty(&entities_[source * dim_], &entity_gradients[source * dim_]);
      add_penalty(&entities_[answer * dim_], &entity_gradients[answer * dim_]);
      add_penalty(&relations_[relation * dim_], &relation_gradients[relation * dim_]);
    }
  }

  void add_to_rows(std::size_t source, std::size_t relation, const std::vector<double>& g) {
    const double* const h = &entities_[source * dim_];
    const double* const r = &relations_[relation * dim_];
    double* const dh = &entity_gradients[source * dim_];
    double* const dr = &relation_gradients[relation * dim_];
    const std::size_t half = dim_ / 2;
    const auto add_product = [&](const double* z, double* to) {
      for (std::size_t i = 0; i < half; ++i) {
        to[i] += g[i] * z[i] + g[i + half] * z[i + half];
        to[i + half] += g[i + half] * z[i] - g[i] * z[i + half];
      }
    };
    if (is_complex()) {
      add_product(r, dh);
      add_product(h, dr);
      return;
    }
    for (std::size_t i = 0; i < dim_; ++i) {
      dh[i] += is_distance() ? g[i] : g[i] * r[i];
      dr[i] += is_distance() ? g[i] : g[i] * h[i];
    }
  }

  void add_penalty(const double* row, double* gradient) const {
    const std::size_t half = dim_ / 2;
    for (std::size_t i = 0; i < dim_; ++i) {
      const double size = !is_complex() ? std::abs(row[i])
                          : i < half    ? std::hypot(row[i], row[i + half])
                                        : std::hypot(row[i - half], row[i]);
      gradient[i] += 3 * static_cast<double>(options_.n3) * size * row[i];
    }
  }
};

}  // namespace capstan::kge

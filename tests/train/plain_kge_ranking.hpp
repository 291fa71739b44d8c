// plain_kge_ranking.hpp -- filtered ranks by definition, in double, and tables to rank.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "train/kge/model.hpp"
#include "train/kge/triple.hpp"

namespace capstan::kge {

struct PlainTables {
  ModelKind model;
  std::size_t dim;
  std::int64_t count, relation_count;
  std::vector<float> entities, relations;

  PlainTables(ModelKind kind, int floats, std::int64_t entity_count, std::int64_t relations_of_graph)
      : model(kind),
        dim(static_cast<std::size_t>(floats)),
        count(entity_count),
        relation_count(relations_of_graph),
        entities(static_cast<std::size_t>(entity_count) * dim),
        relations(static_cast<std::size_t>(2 * relations_of_graph) * dim) {}

  template <class Draw>
  void fill(const Draw& draw) {
    for (auto* table : {&entities, &relations}) std::generate(table->begin(), table->end(), draw);
  }
  void fill_normal(unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 0.5F);
    fill([&] { return normal(random); });
  }
  /// Multiples of a quarter, whose sums are exact: scores do not depend on the order of summation, and many
  /// are equal.
  void fill_exact(unsigned seed) {
    std::mt19937 random(seed);
    fill([&] { return static_cast<float>(static_cast<int>(random() % 5) - 2) / 4; });
  }

  double score(std::int64_t entity, std::int64_t relation, std::int64_t candidate) const {
    const float* const h = entities.data() + static_cast<std::size_t>(entity) * dim;
    const float* const r = relations.data() + static_cast<std::size_t>(relation) * dim;
    const float* const c = entities.data() + static_cast<std::size_t>(candidate) * dim;
    double product = 0, square = 0;
    for (std::size_t i = 0; i < dim; ++i) {
      product += static_cast<double>(query(h, r, i)) * static_cast<double>(c[i]);
      square += static_cast<double>(c[i]) * static_cast<double>(c[i]);
    }
    return model == ModelKind::transe ? 2 * product - square : product;
  }

 private:
  float query(const float* h, const float* r, std::size_t i) const {
    if (model == ModelKind::transe) return h[i] + r[i];
    if (model == ModelKind::distmult) return h[i] * r[i];
    const std::size_t half = dim / 2;
    if (i < half) return std::fma(-h[half + i], r[half + i], h[i] * r[i]);
    return std::fma(h[i - half], r[i], h[i] * r[i - half]);
  }
};

/// Ranks of both directions of each triple: first all tails, then all heads. A NaN score counts as better.
inline std::vector<double> plain_ranks(const PlainTables& tables, const std::vector<Triple>& test,
                                       const std::vector<Triple>& all) {
  const auto reciprocal = static_cast<std::int32_t>(tables.relation_count);
  std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t>> facts;
  for (const auto& [h, r, t] : all) facts.insert({{h, r, t}, {t, r + reciprocal, h}});
  std::vector<double> ranks;
  for (const bool heads : {false, true}) {
    for (const auto& [h, r, t] : test) {
      const std::int32_t entity = heads ? t : h, relation = heads ? r + reciprocal : r;
      const std::int32_t answer = heads ? h : t;
      const double correct = tables.score(entity, relation, answer);
      double rank = 1;
      for (std::int32_t c = 0; c < tables.count; ++c) {
        if (c == answer || facts.count({entity, relation, c}) > 0) continue;
        const double other = tables.score(entity, relation, c);
        rank += std::isnan(correct) || !(other <= correct) ? 1 : other == correct ? 0.5 : 0;
      }
      ranks.push_back(rank);
    }
  }
  return ranks;
}

inline std::vector<Triple> random_triples(std::size_t count, std::int64_t entities, std::int64_t relations,
                                          unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(limit));
  };
  std::vector<Triple> triples(count);
  for (Triple& triple : triples) triple = {below(entities), below(relations), below(entities)};
  return triples;
}

}  // namespace capstan::kge

// learned_relations.hpp -- selects the relations that a model has learned, by its ranks of validation
// triples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/kge/rank_metrics.hpp"
#include "train/kge/triple.hpp"

namespace capstan::kge {

/// Bounds on the relations that are compared, and on the triples of each: the work at the end of a run does
/// not depend on the size of the graph.
constexpr std::size_t kMaxComparedRelations = 32;
constexpr std::size_t kMaxTriplesPerRelation = 64;
/// A single triple that is ranked first by chance must not make its relation the best.
constexpr std::size_t kMinTriplesPerRelation = 10;

struct RelationSample {
  std::int32_t relation = 0;
  std::vector<Triple> triples;
};

/// Samples validation triples of the relations with the most of them, in that order, among relations that
/// also have test triples. The triples depend on `seed`. Relations with fewer than kMinTriplesPerRelation are
/// excluded if others have enough.
std::vector<RelationSample> sample_relations(std::span<const Triple> valid, std::span<const Triple> test,
                                             std::uint64_t seed);

struct RelationMetrics {
  std::int32_t relation = 0;
  Metrics metrics;
};

/// Returns the `count` relations with the best MRR of tails, best first; ties keep the given order. Heads are
/// ignored: for a relation from many heads to one tail, only tails can be predicted.
std::vector<RelationMetrics> best_relations(std::vector<RelationMetrics> relations, std::size_t count);

/// Draws `count` different triples of these relations by `seed`; all triples if there are fewer. If
/// `relations` is empty, draws from all relations.
std::vector<Triple> draw_triples(std::span<const Triple> triples, std::span<const RelationMetrics> relations,
                                 std::size_t count, std::uint64_t seed);

}  // namespace capstan::kge

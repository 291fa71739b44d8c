// learned_relations.hpp -- which relations a model has learned, by its ranks of validation triples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/kge/rank_metrics.hpp"
#include "train/kge/triple.hpp"

namespace capstan::kge {

/// At most so many relations are compared, and each by so many triples: a fixed amount of work at the end of
/// a run, whatever the size of the graph.
constexpr std::size_t kMostComparedRelations = 32;
constexpr std::size_t kMostTriplesOfRelation = 64;
/// One triple that is ranked first by luck must not make its relation the best.
constexpr std::size_t kFewestTriplesOfRelation = 10;

struct RelationSample {
  std::int32_t relation = 0;
  std::vector<Triple> triples;
};

/// Validation triples to compare relations by: of relations that have test triples too, the ones with the
/// most validation triples, in that order. Triples are drawn by the seed. Relations with fewer than
/// kFewestTriplesOfRelation are left out where others have enough.
std::vector<RelationSample> sample_relations(std::span<const Triple> valid, std::span<const Triple> test,
                                             std::uint64_t seed);

struct RelationMetrics {
  std::int32_t relation = 0;
  Metrics metrics;
};

/// The first `count` by the MRR of tails, best first; the order given decides between equals. Heads do not
/// count: of a relation from many heads to one tail, only the tails can be predicted.
std::vector<RelationMetrics> best_relations(std::vector<RelationMetrics> relations, std::size_t count);

/// `count` different triples of these relations, or all where there are fewer, drawn by the seed. No
/// relations means every relation.
std::vector<Triple> draw_triples(std::span<const Triple> triples, std::span<const RelationMetrics> relations,
                                 std::size_t count, std::uint64_t seed);

}  // namespace capstan::kge

// learned_relations.cpp -- see learned_relations.hpp.
#include "train/kge/learned_relations.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "train/counter_rng.hpp"

namespace capstan::kge {
namespace {

/// Keeps `count` of the triples, in the order in which they are drawn.
void draw(std::vector<Triple>& triples, std::size_t count, const train::CounterRng& random) {
  count = std::min(count, triples.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(triples[i], triples[i + random.below(triples.size() - i, i)]);
  }
  triples.resize(count);
}

}  // namespace

std::vector<RelationSample> sample_relations(std::span<const Triple> valid, std::span<const Triple> test,
                                             std::uint64_t seed) {
  std::set<std::int32_t> tested;
  for (const Triple& triple : test) tested.insert(triple.relation);
  std::map<std::int32_t, std::vector<Triple>> by_relation;
  for (const Triple& triple : valid) {
    if (tested.contains(triple.relation)) by_relation[triple.relation].push_back(triple);
  }
  std::vector<RelationSample> samples;
  for (auto& [relation, triples] : by_relation) samples.push_back({relation, std::move(triples)});
  std::ranges::stable_sort(samples, std::greater{}, [](const auto& sample) { return sample.triples.size(); });
  if (samples.size() > kMaxComparedRelations) samples.resize(kMaxComparedRelations);
  while (samples.size() > 1 && samples.back().triples.size() < kMinTriplesPerRelation &&
         samples.front().triples.size() >= kMinTriplesPerRelation) {
    samples.pop_back();
  }
  for (auto& [relation, triples] : samples) {
    draw(triples, kMaxTriplesPerRelation, train::CounterRng(~seed, static_cast<std::uint64_t>(relation) + 1));
  }
  return samples;
}

std::vector<RelationMetrics> best_relations(std::vector<RelationMetrics> relations, std::size_t count) {
  std::ranges::stable_sort(relations, std::greater{},
                           [](const auto& one) { return one.metrics.tails_mrr(); });
  if (relations.size() > count) relations.resize(count);
  return relations;
}

std::vector<Triple> draw_triples(std::span<const Triple> triples, std::span<const RelationMetrics> relations,
                                 std::size_t count, std::uint64_t seed) {
  std::vector<Triple> drawn;
  std::ranges::copy_if(triples, std::back_inserter(drawn), [&](const Triple& triple) {
    return relations.empty() ||
           std::ranges::find(relations, triple.relation, &RelationMetrics::relation) != relations.end();
  });
  draw(drawn, count, train::CounterRng(~seed, 0));
  return drawn;
}

}  // namespace capstan::kge

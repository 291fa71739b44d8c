// kge_learned_relations_test.cpp -- selection of relations, and of triples of the best ones.
// Tests: src/train/kge/results.cpp
#include "train/kge/learned_relations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "train/kge/program.hpp"
#include "train/kge/results.hpp"

namespace capstan::kge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

/// Different triples of one relation.
std::vector<Triple> triples_of(std::int32_t relation, std::size_t count) {
  std::vector<Triple> triples(count);
  for (std::size_t i = 0; i < count; ++i) triples[i] = {static_cast<std::int32_t>(i), relation, 7};
  return triples;
}

std::vector<Triple> joined(const std::vector<std::vector<Triple>>& parts) {
  std::vector<Triple> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<std::int32_t> relations_of(const std::vector<RelationSample>& samples) {
  std::vector<std::int32_t> relations;
  for (const RelationSample& sample : samples) relations.push_back(sample.relation);
  return relations;
}

RelationMetrics ranked(std::int32_t relation, double rank) {
  RelationMetrics one{relation, {}};
  one.metrics.add_ranks(std::vector{rank, 1.0});
  return one;
}

TEST(KgeLearnedRelations, SamplesFrequentRelationsWithTestTriples) {
  const auto valid = joined({triples_of(0, 10), triples_of(1, 9), triples_of(2, 500), triples_of(3, 500)});
  const auto test = joined({triples_of(0, 1), triples_of(1, 1), triples_of(2, 1), triples_of(4, 1)});
  const auto samples = sample_relations(valid, test, 1);
  ASSERT_THAT(relations_of(samples), ElementsAre(2, 0));
  EXPECT_THAT(samples[1].triples, UnorderedElementsAreArray(triples_of(0, 10)));

  const std::vector<Triple>& drawn = samples[0].triples;
  ASSERT_EQ(drawn.size(), kMaxTriplesPerRelation);
  std::set<std::int32_t> heads;
  for (const Triple& triple : drawn) {
    EXPECT_EQ(triple.relation, 2);
    heads.insert(triple.head);
  }
  EXPECT_EQ(heads.size(), drawn.size()) << "no duplicates";
  EXPECT_EQ(sample_relations(valid, test, 1)[0].triples, drawn);
  EXPECT_NE(sample_relations(valid, test, 2)[0].triples, drawn);
}

TEST(KgeLearnedRelations, SamplesRareRelationsOnlyIfAllAreRare) {
  const auto valid = joined({triples_of(0, 1), triples_of(1, 9)});
  EXPECT_THAT(relations_of(sample_relations(valid, valid, 1)), ElementsAre(1, 0));
  EXPECT_THAT(sample_relations({}, valid, 1), IsEmpty());
  EXPECT_THAT(sample_relations(valid, {}, 1), IsEmpty());
}

TEST(KgeLearnedRelations, SamplesABoundedNumberOfRelations) {
  std::vector<Triple> valid;
  for (std::int32_t relation = 0; relation < 100; ++relation) {
    valid = joined({valid, triples_of(relation, relation % 2 == 0 ? 10 : 20)});
  }
  const auto samples = sample_relations(valid, valid, 1);
  ASSERT_EQ(samples.size(), kMaxComparedRelations);
  for (const RelationSample& sample : samples) EXPECT_EQ(sample.triples.size(), 20) << sample.relation;
}

TEST(KgeLearnedRelations, BestRelationsHaveHighestMrr) {
  const std::vector<RelationMetrics> all{ranked(0, 4), ranked(1, 1), ranked(2, 2), ranked(3, 2)};
  const auto best = best_relations(all, 3);
  ASSERT_EQ(best.size(), 3);
  EXPECT_EQ(best[0].relation, 1);
  EXPECT_EQ(best[1].relation, 2);
  EXPECT_EQ(best[2].relation, 3);
  EXPECT_EQ(best_relations(all, 9).size(), 4);
}

TEST(KgeLearnedRelations, DrawsTriplesOfChosenRelationsBySeed) {
  const auto test = joined({triples_of(0, 50), triples_of(1, 50), triples_of(2, 3)});
  const std::vector<RelationMetrics> chosen{ranked(1, 1), ranked(2, 1)};
  const auto drawn = draw_triples(test, chosen, 20, 1);
  ASSERT_EQ(drawn.size(), 20);
  for (const Triple& triple : drawn) EXPECT_NE(triple.relation, 0);
  EXPECT_EQ(draw_triples(test, chosen, 20, 1), drawn);
  EXPECT_NE(draw_triples(test, chosen, 20, 2), drawn);
  EXPECT_THAT(draw_triples(test, chosen, 1000, 1),
              UnorderedElementsAreArray(joined({triples_of(1, 50), triples_of(2, 3)})));
  EXPECT_THAT(draw_triples(test, {}, 1000, 1), UnorderedElementsAreArray(test)) << "of every relation";
}

TEST(KgeLearnedRelations, HeaderOfPredictionsNamesTheRelations) {
  Report report;
  EXPECT_THAT(predictions_header(report), HasSubstr("from all relations (no validation triples"));
  report.compared_relations = 18;
  report.predicted_relations = {{"similar_to", 0.914}, {"hypernym", 0.5}};
  EXPECT_EQ(predictions_header(report),
            "predictions for held-out triples, drawn by --seed from the 2 relations with the best validation "
            "MRR of "
            "tails, of 18 compared (similar_to 0.91, hypernym 0.50)");
}

}  // namespace
}  // namespace capstan::kge

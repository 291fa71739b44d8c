// kge_predict_test.cpp -- predicted tails of triples with hand-computed scores.
#include "train/kge/predict.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "capstan/capstan.hpp"
#include "support/rank_threads.hpp"
#include "train/kge/kernels.hpp"
#include "train/plain_kge_ranking.hpp"

namespace capstan::kge {
namespace {

/// Entities e0, e1, ... are rows {value, 0}; relation r0 is {1, 0}, r1 is {-1, 0}.
class KgePredict : public testing::Test {
 protected:
  io::Graph graph_of(std::size_t entities) {
    io::Graph graph;
    for (std::size_t i = 0; i < entities; ++i) graph.entities.push_back("e" + std::to_string(i));
    graph.relations = {"r0", "r1"};
    return graph;
  }
  std::vector<Prediction> predict(const io::Graph& graph, const std::vector<Triple>& triples,
                                  const std::vector<float>& values, ModelKind model,
                                  const std::vector<float>& relation_rows = {1, 0, -1, 0}) {
    const auto scope = strategy_.scope();
    const Variable<float> entities("entities" + std::to_string(calls_),
                                   Shape{static_cast<std::int64_t>(values.size()), 2});
    const Variable<float> relations("relations" + std::to_string(calls_++),
                                    Shape{2, static_cast<std::int64_t>(relation_rows.size() / 2)});
    std::vector<float> rows;
    for (const float value : values) rows.insert(rows.end(), {value, 0});
    entities.assign(rows);
    relations.assign(relation_rows);
    return predict_tails(graph, triples, entities, relations, model);
  }

  RankThreads ranks_{{.ranks = 4, .flags = {{"ps", "2"}}}};
  ParameterServerStrategy strategy_{ranks_.cluster(), {.variable_partitioner = FixedShardsPartitioner{2}}};
  int calls_ = 0;
};

TEST_F(KgePredict, NamesTheBestTailAndTheTrueOne) {
  const auto out = predict(graph_of(4), {{1, 0, 2}, {1, 1, 0}}, {0, 1, 2, 3}, ModelKind::distmult);
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0].head, "e1");
  EXPECT_EQ(out[0].relation, "r0");
  EXPECT_EQ(out[0].predicted, "e3");
  EXPECT_EQ(out[0].truth, "e2");
  EXPECT_EQ(out[0].rank, 2);
  EXPECT_FALSE(out[0].right());
  EXPECT_EQ(out[1].relation, "r1");
  EXPECT_EQ(out[1].predicted, "e0");
  EXPECT_EQ(out[1].rank, 1);
  EXPECT_TRUE(out[1].right());
}

TEST_F(KgePredict, ExcludesOtherKnownAnswers) {
  io::Graph graph = graph_of(6);
  graph.train = {{1, 0, 5}, {1, 1, 4}, {2, 0, 4}};  // the others answer other queries
  graph.test = {{1, 0, 2}};
  const auto out = predict(graph, {{1, 0, 2}, {1, 0, 5}}, {0, 1, 2, 3, 4, 5}, ModelKind::distmult);
  EXPECT_EQ(out[0].predicted, "e4");
  EXPECT_EQ(out[0].rank, 3);  // after e4 and e3
  EXPECT_EQ(out[1].predicted, "e5") << "its own tail counts, known or not";
  EXPECT_EQ(out[1].rank, 1);
}

TEST_F(KgePredict, CountsTiesWithTheTruthHalf) {
  const auto out = predict(graph_of(6), {{0, 0, 2}}, {1, 7, 3, 3, 3, 2}, ModelKind::distmult);
  EXPECT_EQ(out[0].predicted, "e1");
  EXPECT_EQ(out[0].rank, 1 + 1 + 2 / 2.0);
}

TEST_F(KgePredict, TranseScoresTheNearestHighest) {
  const auto out = predict(graph_of(6), {{2, 0, 5}, {2, 1, 1}}, {0, 1, 2, 3, 4, 5}, ModelKind::transe);
  EXPECT_EQ(out[0].predicted, "e3");  // 2 + 1
  EXPECT_EQ(out[0].rank, 4.5);        // after e3, e2 and e4, tied with e1
  EXPECT_EQ(out[1].predicted, "e1");  // 2 - 1
  EXPECT_EQ(out[1].rank, 1);
}

TEST_F(KgePredict, RotateScoresTheNearestHighest) {
  constexpr float kHalfTurn = 3.14159265F / kRotationScale;
  const auto out =
      predict(graph_of(4), {{2, 0, 3}, {2, 1, 1}}, {1, -2, 2, 4}, ModelKind::rotate, {0, kHalfTurn});
  EXPECT_EQ(out[0].predicted, "e2");  // 2
  EXPECT_EQ(out[0].rank, 3);          // at a distance of 2: after e2 and e0
  EXPECT_EQ(out[1].predicted, "e1");  // -2
  EXPECT_EQ(out[1].rank, 1);
}

TEST_F(KgePredict, RescalMultipliesByAMatrix) {
  // The first matrix maps {v, 0} to {-v, v}, the second one to {2 v, 0}.
  const auto out =
      predict(graph_of(3), {{2, 0, 1}, {2, 1, 1}}, {-1, 1, 3}, ModelKind::rescal, {-1, 1, 0, 0, 2, 0, 0, 0});
  EXPECT_EQ(out[0].predicted, "e0");
  EXPECT_EQ(out[0].rank, 2);
  EXPECT_EQ(out[1].predicted, "e2");
  EXPECT_EQ(out[1].rank, 2);
}

TEST_F(KgePredict, ScoresEveryEntityOfALargeTable) {
  // More rows than one pull reads.
  std::vector<float> values(8192 + 10, 1);
  values[8191] = 2;
  values[8192] = 4;
  values[8201] = 3;
  const auto out =
      predict(graph_of(values.size()), {{0, 0, 8201}, {0, 0, 8191}}, values, ModelKind::distmult);
  EXPECT_EQ(out[0].predicted, "e8192");
  EXPECT_EQ(out[0].truth, "e8201");
  EXPECT_EQ(out[0].rank, 2);
  EXPECT_EQ(out[1].predicted, "e8192");
  EXPECT_EQ(out[1].rank, 3);
}

TEST(KgePredictWithRoundedMessages, RanksExactRows) {
  constexpr std::int64_t kPredictedEntities = 500;
  const RankThreads ranks{{.ranks = 4, .flags = {{"ps", "2"}, {"window", "am"}}}};
  ParameterServerStrategy strategy{ranks.cluster(), {.int8_lookups = true}};
  const auto scope = strategy.scope();
  PlainTables tables(ModelKind::distmult, 16, kPredictedEntities, 2);
  tables.fill_normal(5);
  const Variable<float> entities("entities", Shape{kPredictedEntities, 16});
  const Variable<float> relations("relations", Shape{4, 16});
  entities.assign(tables.entities);
  relations.assign(tables.relations);
  io::Graph graph;
  graph.entities = std::vector<std::string>(kPredictedEntities, "e");
  graph.relations = {"r0", "r1"};
  const std::vector<Triple> triples = random_triples(64, kPredictedEntities, 2, 6);
  const auto out = predict_tails(graph, triples, entities, relations, ModelKind::distmult);
  for (std::size_t i = 0; i < triples.size(); ++i)
    EXPECT_EQ(out.at(i).rank, plain_ranks(tables, {triples[i]}, {}).front()) << "triple " << i;
}

TEST_F(KgePredict, NoTriplesGiveNoPredictions) {
  EXPECT_TRUE(predict(graph_of(2), {}, {0, 1}, ModelKind::complex).empty());
}

}  // namespace
}  // namespace capstan::kge

// pair_split_test.cpp -- held-out triples, compared with a brute-force implementation of the rule.
#include "io/data/pair_split.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <utility>

#include "capstan/error.hpp"

namespace capstan::io {
namespace {

Graph random_split(std::size_t entities, std::size_t count, const SplitShares& shares,
                   std::vector<GraphTriple>* all = nullptr) {
  std::mt19937 random(7);
  std::uniform_int_distribution<std::int32_t> entity(0, static_cast<std::int32_t>(entities) - 1),
      relation(0, 4);
  std::vector<GraphTriple> triples;
  for (std::size_t i = 0; i < count; ++i) {
    triples.push_back({entity(random), relation(random), entity(random)});
    if (i % 3 == 0) triples.push_back({triples.back().tail, relation(random), triples.back().head});
  }
  Graph graph;
  graph.entities.resize(entities);
  split_by_pair(triples, shares, graph);
  if (all != nullptr) *all = triples;
  return graph;
}

std::set<std::pair<int, int>> pairs_in(const std::vector<GraphTriple>& triples) {
  std::set<std::pair<int, int>> pairs;
  for (const GraphTriple& t : triples) pairs.emplace(std::min(t.head, t.tail), std::max(t.head, t.tail));
  return pairs;
}

bool disjoint(const std::set<std::pair<int, int>>& a, const std::set<std::pair<int, int>>& b) {
  for (const auto& pair : a) {
    if (b.contains(pair)) return false;
  }
  return true;
}

class PairSplit : public ::testing::TestWithParam<SplitShares> {};

TEST_P(PairSplit, MatchesTheRuleByBruteForce) {
  std::vector<GraphTriple> all;
  const Graph graph = random_split(500, 2000, GetParam(), &all);
  EXPECT_EQ(graph.train.size() + graph.valid.size() + graph.test.size(), all.size());
  const auto train = pairs_in(graph.train), valid = pairs_in(graph.valid), test = pairs_in(graph.test);
  EXPECT_TRUE(disjoint(train, valid));
  EXPECT_TRUE(disjoint(train, test));
  EXPECT_TRUE(disjoint(valid, test));
  std::set<int> mentioned;
  for (const GraphTriple& t : graph.train) mentioned.insert({t.head, t.tail});
  for (const auto* split : {&graph.valid, &graph.test}) {
    for (const GraphTriple& t : *split) {
      EXPECT_TRUE(mentioned.contains(t.head));
      EXPECT_TRUE(mentioned.contains(t.tail));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shares, PairSplit,
                         ::testing::Values(SplitShares{0.02, 0.02, 1}, SplitShares{0.3, 0.3, 2},
                                           SplitShares{0.49, 0.5, 3}, SplitShares{0, 0, 4}));

TEST(PairSplitShares, ResultIsCloseToTheRequest) {
  const Graph graph = random_split(300, 60'000, {0.1, 0.2, 9});
  const double all = static_cast<double>(graph.train.size() + graph.valid.size() + graph.test.size());
  EXPECT_NEAR(static_cast<double>(graph.valid.size()) / all, 0.1, 0.01);
  EXPECT_NEAR(static_cast<double>(graph.test.size()) / all, 0.2, 0.01);
  const Graph none = random_split(300, 1000, {0, 0, 9});
  EXPECT_TRUE(none.valid.empty());
  EXPECT_TRUE(none.test.empty());
}

TEST(PairSplitShares, RejectsInvalidShares) {
  check_shares(0, 0);
  check_shares(0.5, 0.49);
  for (const auto& [valid, test] : std::vector<std::pair<double, double>>{
           {-0.1, 0.1}, {0.1, -0.1}, {0.5, 0.5}, {2, 0}, {std::nan(""), 0.1}, {0.1, std::nan("")}}) {
    EXPECT_THROW(check_shares(valid, test), Error) << valid << " " << test;
  }
}

}  // namespace
}  // namespace capstan::io

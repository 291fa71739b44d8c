// wordnet_test.cpp -- Debian's WordNet as a graph, and small files with one defect each.
#include "io/data/wordnet.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "capstan/error.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Read once: it takes half a second, more under a sanitizer.
const Graph* debian_wordnet() {
  static const auto graph =
      std::filesystem::exists(kWordnetDirectory) ? std::make_unique<Graph>(read_wordnet()) : nullptr;
  return graph.get();
}

#define SKIP_WITHOUT_WORDNET()     \
  if (debian_wordnet() == nullptr) \
  GTEST_SKIP() << kWordnetDirectory << " does not exist (Debian: wordnet-base)"

std::set<std::pair<int, int>> pairs_of(const std::vector<GraphTriple>& triples) {
  std::set<std::pair<int, int>> pairs;
  for (const GraphTriple& t : triples) pairs.emplace(std::min(t.head, t.tail), std::max(t.head, t.tail));
  return pairs;
}

TEST(Wordnet, HasEverySynsetAndSemanticRelation) {
  SKIP_WITHOUT_WORDNET();
  const Graph& graph = *debian_wordnet();
  EXPECT_EQ(graph.entities.size(), 117'659U);
  EXPECT_EQ(graph.train.size() + graph.valid.size() + graph.test.size(), 285'348U);
  EXPECT_EQ(graph.unseen.entities, 0U);
  std::map<std::string, int> counts;
  for (const auto* split : {&graph.train, &graph.valid, &graph.test}) {
    for (const GraphTriple& t : *split) ++counts[graph.relations[static_cast<std::size_t>(t.relation)]];
  }
  // Counted independently with grep and awk.
  const std::map<std::string, int> expected{{"hypernym", 89'089},
                                            {"hyponym", 89'089},
                                            {"instance_hypernym", 8577},
                                            {"instance_hyponym", 8577},
                                            {"member_holonym", 12'293},
                                            {"member_meronym", 12'293},
                                            {"part_holonym", 9097},
                                            {"part_meronym", 9097},
                                            {"substance_holonym", 797},
                                            {"substance_meronym", 797},
                                            {"similar_to", 21'386},
                                            {"also_see", 2692},
                                            {"attribute", 1278},
                                            {"verb_group", 1748},
                                            {"entailment", 408},
                                            {"cause", 220},
                                            {"domain_of_synset_topic", 6643},
                                            {"member_of_this_domain_topic", 6643},
                                            {"domain_of_synset_region", 1345},
                                            {"member_of_this_domain_region", 1345},
                                            {"domain_of_synset_usage", 967},
                                            {"member_of_this_domain_usage", 967}};
  EXPECT_EQ(counts, expected);
}

TEST(Wordnet, NamesAreUniqueAndReadable) {
  SKIP_WITHOUT_WORDNET();
  const auto& names = debian_wordnet()->entities;
  const std::set<std::string> unique(names.begin(), names.end());
  EXPECT_EQ(unique.size(), names.size());
  EXPECT_EQ(names.front(), "entity.n.01");
  for (const char* name : {"whale.n.01", "bank.n.02", "breathe.v.01", "able.a.01", "galore.a.01"})
    EXPECT_TRUE(unique.contains(name)) << name;
  for (const std::string& name : names) EXPECT_EQ(name.find_first_of(" \t()"), std::string::npos) << name;
}

TEST(Wordnet, HasAKnownRelationInBothDirections) {
  SKIP_WITHOUT_WORDNET();
  const Graph& graph = *debian_wordnet();
  std::set<std::string> found;
  for (const auto* split : {&graph.train, &graph.valid, &graph.test}) {
    for (const GraphTriple& t : *split) {
      const auto& head = graph.entities[static_cast<std::size_t>(t.head)];
      if (head.starts_with("physical_entity.n.")) {
        found.insert(graph.relations[static_cast<std::size_t>(t.relation)] + " " +
                     graph.entities[static_cast<std::size_t>(t.tail)]);
      }
      if (head == "entity.n.01") {
        found.insert("entity " + graph.relations[static_cast<std::size_t>(t.relation)] + " " +
                     graph.entities[static_cast<std::size_t>(t.tail)]);
      }
    }
  }
  EXPECT_TRUE(found.contains("hypernym entity.n.01"));
  EXPECT_TRUE(found.contains("entity hyponym physical_entity.n.01"));
}

TEST(Wordnet, NoHeldOutEdgeHasItsInverseInTrain) {
  SKIP_WITHOUT_WORDNET();
  const Graph& graph = *debian_wordnet();
  const auto train = pairs_of(graph.train), valid = pairs_of(graph.valid), test = pairs_of(graph.test);
  ASSERT_GT(valid.size(), 1000U);
  ASSERT_GT(test.size(), 1000U);
  std::size_t leaks = 0;
  for (const auto& pair : valid) leaks += train.count(pair) + test.count(pair);
  for (const auto& pair : test) leaks += train.count(pair);
  EXPECT_EQ(leaks, 0U);
}

TEST(Wordnet, EveryEntityWithAnEdgeHasOneInTrain) {
  SKIP_WITHOUT_WORDNET();
  const Graph& graph = *debian_wordnet();
  std::set<int> in_train, in_any;
  for (const GraphTriple& t : graph.train) in_train.insert({t.head, t.tail});
  for (const auto* split : {&graph.train, &graph.valid, &graph.test}) {
    for (const GraphTriple& t : *split) in_any.insert({t.head, t.tail});
  }
  EXPECT_EQ(in_train, in_any);
  EXPECT_EQ(in_any.size(), 109'745U);
}

TEST(Wordnet, TheSplitDependsOnlyOnTheSeed) {
  SKIP_WITHOUT_WORDNET();
  const Graph& graph = *debian_wordnet();
  const Graph same = read_wordnet(), other = read_wordnet(kWordnetDirectory, {.seed = 1}),
              none = read_wordnet(kWordnetDirectory, {0, 0, 0});
  EXPECT_EQ(same.train, graph.train);
  EXPECT_EQ(same.valid, graph.valid);
  EXPECT_EQ(same.test, graph.test);
  EXPECT_NE(other.test, graph.test);
  EXPECT_EQ(none.train.size(), 285'348U);
  // Held out: 2 % each, minus the edges moved back to train. Many synsets have one edge.
  for (const auto* split : {&graph.valid, &graph.test, &other.valid, &other.test}) {
    EXPECT_GT(split->size(), 285'348U / 200);
    EXPECT_LT(split->size(), 285'348U / 50);
  }
}

/// One synset per file, except for two nouns that point at each other. Offsets are byte positions.
class SmallWordnet : public ::testing::Test {
 protected:
  SmallWordnet() {
    const std::string first =
        "00000010 05 n 02 Whale 0 giant 0 002 ~ 00000089 n 0000 + 00000000 v 0101 | big\n";
    directory_.write("data.noun",
                     "  license\n" + first + "00000089 05 n 01 Whale 0 001 @ 00000010 n 0000 | bigger  \n");
    EXPECT_EQ(10 + first.size(), 89U);
    directory_.write("data.verb", "00000000 29 v 01 swim 0 000 01 + 02 00 | move\n");
    directory_.write("data.adj", "00000000 00 s 01 galore(ip) 0 001 & 00000000 a 0000 | many\n");
    directory_.write("data.adv", "00000000 02 r 01 well 0 001 \\ 00000000 a 0101 | good\n");
  }

  std::string fault(Code code) const {
    try {
      read_wordnet(directory_.path());
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "read without an error";
    return {};
  }

  TemporaryDirectory directory_;
};

TEST_F(SmallWordnet, IsRead) {
  const Graph graph = read_wordnet(directory_.path());
  EXPECT_THAT(graph.entities,
              ElementsAre("Whale.n.01", "Whale.n.02", "swim.v.01", "galore.a.01", "well.r.01"));
  EXPECT_THAT(graph.relations, ElementsAre("hyponym", "hypernym", "similar_to"));
  EXPECT_EQ(graph.train, (std::vector<GraphTriple>{{0, 0, 1}, {1, 1, 0}, {3, 2, 3}}));
}

TEST_F(SmallWordnet, NamesThePackageOfAMissingFile) {
  std::filesystem::remove(directory_.path() / "data.adv");
  const std::string text = fault(Code::not_found);
  for (const std::string& word :
       {directory_.path().string(), std::string("data.adv"), std::string("--data DIR")})
    EXPECT_THAT(text, HasSubstr(word));
  try {
    read_wordnet(directory_.path() / "none");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_THAT(error.what(), HasSubstr("wordnet-base"));
  }
}

TEST_F(SmallWordnet, NamesAMalformedLine) {
  const auto expect = [&](const std::string& text, const std::string& message) {
    directory_.write("data.verb", "  license\n" + text);
    EXPECT_THAT(fault(Code::data_loss), HasSubstr(message)) << text;
  };
  expect("", "data.verb");
  expect("garbage\n", "data.verb:2:");
  expect("\n", "data.verb:2:");
  expect("00000010 29 v 01 swim 0 000 01 + 02 00 | move", "data.verb:2:");
  expect("00000011 29 v 01 swim 0 000 | move\n", "byte offset");
  expect("0000001x 29 v 01 swim 0 000 | move\n", "\"0000001x\"");
  expect("00000010 29 n 01 swim 0 000 | move\n", "part of speech");
  expect("00000010 29 x 01 swim 0 000 | move\n", "\"x\"");
  expect("00000010 29 v 00 000 | move\n", "word count");
  expect("00000010 29 v 05 swim 0 000 | move\n", "data.verb:2:");
  expect("00000010 29 v 01 swim 0 001 | move\n", "data.verb:2:");
  expect("00000010 29 v 01 swim 0 001 * 00000099 v 0000 | move\n", "byte 99");
  expect("00000010 29 v 01 swim 0 001 ? 00000010 v 0000 | move\n", "\"?\"");
  expect("00000010 29 v 01 swim 0 ffffffff | move\n", "pointer count");
}

TEST_F(SmallWordnet, RejectsInvalidShares) {
  EXPECT_THROW(read_wordnet(directory_.path(), {.valid = 0.5, .test = 0.5}), Error);
  EXPECT_THROW(read_wordnet(directory_.path(), {.valid = -1}), Error);
}

}  // namespace
}  // namespace capstan::io

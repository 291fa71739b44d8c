// triples_test.cpp -- tab-separated graphs: contents, and errors with file and line.
// Tests: io/data/graph.hpp
#include "io/data/triples.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "capstan/error.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Triples = std::vector<GraphTriple>;

class TripleFiles : public ::testing::Test {
 protected:
  TripleFiles() {
    directory_.write("train.txt", "cat\tis\tanimal\nanimal\thas\tlegs\n");
    directory_.write("valid.txt", "cat\thas\tlegs\n");
    directory_.write("test.txt", "legs\tis\tcat\n");
  }

  Graph read() const { return read_graph(directory_.path()); }

  std::string fault(Code code) const {
    try {
      read();
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "read without an error";
    return {};
  }

  TemporaryDirectory directory_;
};

TEST_F(TripleFiles, IndexNamesInOrderOfAppearance) {
  const Graph graph = read();
  EXPECT_THAT(graph.entities, ElementsAre("cat", "animal", "legs"));
  EXPECT_THAT(graph.relations, ElementsAre("is", "has"));
  EXPECT_EQ(graph.train, (Triples{{0, 0, 1}, {1, 1, 2}}));
  EXPECT_EQ(graph.valid, (Triples{{0, 1, 2}}));
  EXPECT_EQ(graph.test, (Triples{{2, 0, 0}}));
  EXPECT_EQ(graph.unseen.entities, 0U);
  EXPECT_EQ(graph.unseen.triples, 0U);
  EXPECT_EQ(graph.unseen.entity_example, "");
}

TEST_F(TripleFiles, MayHaveCrlfNoFinalNewlineAndAByteOrderMark) {
  const Graph plain = read();
  directory_.write("train.txt",
                   "\xef\xbb\xbf"
                   "cat\tis\tanimal\r\nanimal\thas\tlegs\r\n");
  directory_.write("valid.txt", "cat\thas\tlegs");
  directory_.write("test.txt", "legs\tis\tcat\r");
  const Graph graph = read();
  EXPECT_EQ(graph.entities, plain.entities);
  EXPECT_EQ(graph.train, plain.train);
  EXPECT_EQ(graph.valid, plain.valid);
  EXPECT_EQ(graph.test, plain.test);
}

TEST_F(TripleFiles, NamesKeepTheirSpacesAndBytes) {
  directory_.write("train.txt", " New York \tcapital of\t\xc3\x89tat\n");
  EXPECT_EQ(read().entities[0], " New York ");
  EXPECT_EQ(read().entities[1], "\xc3\x89tat");
}

TEST_F(TripleFiles, CountsNamesThatTrainLacks) {
  directory_.write("valid.txt", "cat\thas\tlegs\ncat\thas\tfur\n");
  directory_.write("test.txt", "fur\ton\ttail\nlegs\tis\tcat\ntail\tis\tfur\n");
  const Graph graph = read();
  EXPECT_THAT(graph.entities, ElementsAre("cat", "animal", "legs", "fur", "tail"));
  EXPECT_THAT(graph.relations, ElementsAre("is", "has", "on"));
  EXPECT_EQ(graph.valid.size(), 2U);
  EXPECT_EQ(graph.test.size(), 3U);
  EXPECT_EQ(graph.unseen.entities, 2U);
  EXPECT_EQ(graph.unseen.relations, 1U);
  EXPECT_EQ(graph.unseen.triples, 3U);
  EXPECT_EQ(graph.unseen.entity_example, "valid.txt:2: entity \"fur\"");
  EXPECT_EQ(graph.unseen.relation_example, "test.txt:1: relation \"on\"");
}

TEST_F(TripleFiles, NamesAMissingFile) {
  for (const char* name : {"train.txt", "valid.txt", "test.txt"}) {
    const auto away = directory_.path() / "away";
    std::filesystem::rename(directory_.path() / name, away);
    EXPECT_THAT(fault(Code::not_found), HasSubstr((directory_.path() / name).string() + ": No such file"));
    std::filesystem::rename(away, directory_.path() / name);
  }
  std::filesystem::remove(directory_.path() / "test.txt");
  std::filesystem::create_directory(directory_.path() / "test.txt");
  EXPECT_THAT(fault(Code::invalid_argument), HasSubstr("test.txt is not a regular file"));
}

TEST_F(TripleFiles, NamesAnEmptyFile) {
  for (const char* name : {"train.txt", "valid.txt", "test.txt"}) {
    std::ifstream in(directory_.path() / name);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    directory_.write(name, "");
    EXPECT_THAT(fault(Code::invalid_argument), HasSubstr(std::string(name) + " is empty"));
    directory_.write(name, text);
  }
}

TEST_F(TripleFiles, NamesAndQuotesAMalformedLine) {
  const auto expect = [&](const std::string& line, const std::string& message) {
    directory_.write("valid.txt", "cat\thas\tlegs\n" + line + "\ncat\thas\tlegs\n");
    EXPECT_EQ(fault(Code::invalid_argument), message);
  };
  const std::string expected = "valid.txt:2: expected head<TAB>relation<TAB>tail, found ";
  expect("cat\thas", expected + "2 fields: \"cat\\thas\"");
  expect("cat has legs", expected + "1 field: \"cat has legs\"");
  expect("", expected + "1 field: \"\"");
  expect("a\tb\tc\td", expected + "4 fields: \"a\\tb\\tc\\td\"");
  expect("a\tb\tc\t", expected + "4 fields: \"a\\tb\\tc\\t\"");
  expect("\x1b[31m", expected + "1 field: \"\\x1b[31m\"");
  expect(std::string(1000, 'x'), expected + "1 field: \"" + std::string(60, 'x') + "...\"");
  expect("\tb\tc", "valid.txt:2: the head is empty: \"\\tb\\tc\"");
  expect("a\t\tc", "valid.txt:2: the relation is empty: \"a\\t\\tc\"");
  expect("a\tb\t", "valid.txt:2: the tail is empty: \"a\\tb\\t\"");
  expect(std::string("a\tb\0\tc", 6), "valid.txt:2: found a NUL byte, expected text");
}

TEST(ReadGraph, NamesAMissingDirectory) {
  const TemporaryDirectory directory;
  try {
    read_graph(directory.path() / "none");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_THAT(error.what(), HasSubstr((directory.path() / "none").string()));
  }
}

/// A simple reference implementation.
struct PlainGraph {
  std::map<std::string, std::int32_t> entities, relations;
  std::vector<Triples> splits;
};
PlainGraph read_plainly(const std::filesystem::path& directory) {
  PlainGraph graph;
  const auto number = [](auto& names, const std::string& name) {
    return names.emplace(name, static_cast<std::int32_t>(names.size())).first->second;
  };
  for (const char* file : {"train.txt", "valid.txt", "test.txt"}) {
    graph.splits.emplace_back();
    std::ifstream in(directory / file);
    for (std::string head, relation, tail; in >> head >> relation >> tail;) {
      const auto h = number(graph.entities, head);
      const auto r = number(graph.relations, relation);
      graph.splits.back().push_back({h, r, number(graph.entities, tail)});
    }
  }
  return graph;
}

struct DataSet {
  const char* name;
  std::size_t entities, relations, train, valid, test;
};
class RealData : public ::testing::TestWithParam<DataSet> {};

TEST_P(RealData, MatchesASimpleReader) {
  const auto directory = std::filesystem::path(CAPSTAN_SOURCE_DIR) / "../shared/data" / GetParam().name;
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << directory << " does not exist";
  const Graph graph = read_graph(directory);
  EXPECT_EQ(graph.entities.size(), GetParam().entities);
  EXPECT_EQ(graph.relations.size(), GetParam().relations);
  EXPECT_EQ(graph.train.size(), GetParam().train);
  EXPECT_EQ(graph.valid.size(), GetParam().valid);
  EXPECT_EQ(graph.test.size(), GetParam().test);
  const PlainGraph plain = read_plainly(directory);
  EXPECT_EQ(graph.train, plain.splits[0]);
  EXPECT_EQ(graph.valid, plain.splits[1]);
  EXPECT_EQ(graph.test, plain.splits[2]);
  ASSERT_EQ(graph.entities.size(), plain.entities.size());
  for (const auto& [name, number] : plain.entities)
    EXPECT_EQ(graph.entities[static_cast<std::size_t>(number)], name);
}

INSTANTIATE_TEST_SUITE_P(Sets, RealData,
                         ::testing::Values(DataSet{"wn18rr", 40943, 11, 86835, 3034, 3134},
                                           DataSet{"umls", 135, 46, 5216, 652, 661}),
                         [](const auto& set) { return set.param.name; });

TEST(RealDataOfWn18rr, HasEntitiesThatTrainLacks) {
  const auto directory = std::filesystem::path(CAPSTAN_SOURCE_DIR) / "../shared/data/wn18rr";
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << directory << " does not exist";
  const Unseen unseen = read_graph(directory).unseen;
  EXPECT_EQ(unseen.entities, 384U);
  EXPECT_EQ(unseen.relations, 0U);
  EXPECT_EQ(unseen.triples, 420U);
  EXPECT_THAT(unseen.entity_example, HasSubstr("valid.txt:"));
}

}  // namespace
}  // namespace capstan::io

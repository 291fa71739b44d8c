// scoring_test.cpp -- members of requests, the best scores, examples in lines, and the text of a shape.
// Tests: src/train/scoring/request_members.cpp
// Tests: src/train/scoring/text_examples.cpp
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "support/expect_error.hpp"
#include "train/best_scores.hpp"
#include "train/deep/shape.hpp"
#include "train/scoring/request_members.hpp"
#include "train/scoring/text_examples.hpp"

namespace capstan::train {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::Pair;

TEST(BestScores, KeepsTheHighestAndBreaksTiesById) {
  BestScores best(3);
  best.add(std::numeric_limits<double>::quiet_NaN(), 0);
  for (const auto& [score, id] : {std::pair{1.0, 5}, {2.0, 9}, {1.0, 4}, {-1.0, 1}}) best.add(score, id);
  EXPECT_THAT(best.take(), ElementsAre(Pair(2.0, 9), Pair(1.0, 4), Pair(1.0, 5)));
  BestScores many(2);
  for (int i = 0; i < 100'000; ++i) many.add(i % 50'000, i);
  EXPECT_THAT(many.take(), ElementsAre(Pair(49'999.0, 49'999), Pair(49'999.0, 99'999)));
}

TEST(RequestMembers, ReadsMembersOfTheirType) {
  const json request{{"name", "a"}, {"user", -3}, {"items", {1, 2}}, {"lines", {"x"}}, {"count", 5}};
  EXPECT_EQ(text_member(request, "name"), "a");
  EXPECT_EQ(integer_member(request, "user"), -3);
  EXPECT_THAT(integers_member(request, "items", 2), ElementsAre(1, 2));
  EXPECT_THAT(texts_member(request, "lines", 1), ElementsAre("x"));
  EXPECT_EQ(count_member(request, 5), 5U);
  EXPECT_EQ(count_member(json::object(), 100), 10U);
  EXPECT_EQ(count_member(json::object(), 4), 4U);
}

TEST(RequestMembers, RejectsOtherTypesAndTooManyElements) {
  const json request{{"name", "a"}, {"items", {1, "2"}},
                     {"count", 0},  {"large", std::numeric_limits<std::uint64_t>::max()},
                     {"real", 1.0}, {"object", json::object()}};
  const auto code = [](const auto& read) { return code_of([&] { (void)read(); }); };
  EXPECT_EQ(code([&] { return text_member(request, "none"); }), Code::invalid_argument);
  EXPECT_EQ(code([&] { return text_member(request, "items"); }), Code::invalid_argument);
  for (const char* name : {"name", "items", "large", "real", "object", "none"}) {
    EXPECT_EQ(code([&] { return integer_member(request, name); }), Code::invalid_argument) << name;
  }
  EXPECT_EQ(code([&] { return integers_member(request, "items", 2); }), Code::invalid_argument);
  EXPECT_EQ(code([&] { return texts_member(request, "items", 2); }), Code::invalid_argument);
  EXPECT_EQ(code([&] { return texts_member(request, "name", 2); }), Code::invalid_argument);
  EXPECT_EQ(code([&] { return integers_member(request, "items", 1); }), Code::resource_exhausted);
  EXPECT_EQ(code([&] { return count_member(request, 5); }), Code::invalid_argument);
  EXPECT_EQ(code([&] { return count_member(json{{"count", 1'000'000'000}}, 5); }), Code::resource_exhausted);
  constexpr std::array<std::string_view, 2> kKnown{"name", "items"};
  EXPECT_EQ(code_of([&] { check_members(request, kKnown); }), Code::invalid_argument);
  EXPECT_EQ(code_of([&] { check_members(json(3), kKnown); }), Code::invalid_argument);
  check_members(json{{"name", 1}}, kKnown);
}

TEST(LinesAsExamples, AreReadAsFilesAre) {
  const std::vector<std::string> lines{"1 4:0.5 2:1", "0", "-1 4:2"};
  const SparseExamples examples = read_lines(lines, {.format = "libsvm", .features = 5});
  EXPECT_THAT(examples.ids, ElementsAre(2, 4));
  EXPECT_THAT(examples.offsets, ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(examples.values, ElementsAre(0.5F, 1, 2));
}

TEST(LinesAsExamples, RejectsLinesThatAreNotOneExample) {
  const SparseFormat format{.format = "libsvm", .features = 5};
  for (const std::vector<std::string>& lines : std::vector<std::vector<std::string>>{
           {"1 1:1", ""}, {"1 1:1\n0 1:1"}, {"1 1:1\r"}, {"# text", "1 1:1"}, {"1 x"}, {"1 7:1"}}) {
    EXPECT_EQ(code_of([&] { (void)read_lines(lines, format); }), Code::invalid_argument) << lines.front();
  }
}

TEST(DeepShapeText, ParsesItsOwnText) {
  for (const DeepShape& shape :
       {DeepShape{DeepModel::deepfm, 16, {128, 64}, {}, 0}, DeepShape{DeepModel::deepfm, 4, {}, {}, 0},
        DeepShape{DeepModel::dlrm, 8, {32}, {16, 8}, 0}, DeepShape{DeepModel::dcn, 8, {32}, {}, 3}}) {
    const DeepShape parsed = DeepShape::parse(shape.model, shape.text());
    EXPECT_EQ(parsed.text(), shape.text());
    EXPECT_EQ(parsed.hidden, shape.hidden);
    EXPECT_EQ(parsed.factors, shape.factors);
    EXPECT_EQ(parsed.bottom, shape.bottom);
    EXPECT_EQ(parsed.cross_layers, shape.cross_layers);
  }
  for (const char* text : {"", "text", "--factors=x --hidden=1", "--factors=4", "--factors=4 --hidden=-1"}) {
    EXPECT_EQ(code_of([&] { (void)DeepShape::parse(DeepModel::deepfm, text); }), Code::invalid_argument)
        << text;
  }
}

}  // namespace
}  // namespace capstan::train

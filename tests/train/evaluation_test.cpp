// evaluation_test.cpp -- metrics as text and JSON.
#include "train/evaluation.hpp"

#include <gtest/gtest.h>

#include "train/metrics.hpp"

namespace capstan::train {
namespace {

TEST(Evaluation, IsShownWithItsLabels) {
  const Evaluation found{{{"mrr", 0.46244, "MRR"}, {"loss", 0.5, "", 6}}, 12, "queries"};
  EXPECT_EQ(to_string(found), "MRR 0.4624  loss 0.500000  (12 queries)");
  EXPECT_EQ(to_json(found), nlohmann::json::parse(R"({"mrr": 0.46244, "loss": 0.5, "queries": 12})"));
  EXPECT_EQ(value_of(found, "loss"), 0.5);
}

TEST(Evaluation, OfAClassifierHasNoAucForOneClass) {
  Scores scores;
  scores.add(2, true);
  EXPECT_FALSE(to_json(classification(scores)).contains("auc"));
  scores.add(-1, false);
  EXPECT_EQ(to_json(classification(scores)).at("auc"), 1);
  EXPECT_EQ(to_json(classification(scores)).at("examples"), 2);
}

TEST(Evaluation, NamedSumsOfPartsAreAdded) {
  Scores all{.sums = {{"squares", 2}}};
  all.merge({.sums = {{"squares", 3}, {"more", 1}}});
  EXPECT_EQ(all.sums.at("squares"), 5);
  EXPECT_EQ(all.sums.at("more"), 1);
}

}  // namespace
}  // namespace capstan::train

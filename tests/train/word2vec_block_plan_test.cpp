// word2vec_block_plan_test.cpp -- pairs, negatives and rows of a block of text.
#include "train/word2vec/block_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

namespace capstan::train::word2vec {
namespace {

using testing::ElementsAre;

Vocabulary small_vocabulary() { return {{"a", "b", "c", "d"}, {40, 30, 20, 10}, 100}; }

/// Pairs of (word, true context) as rows.
std::vector<std::pair<std::int64_t, std::int64_t>> true_pairs(const BlockPlan& plan) {
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  std::size_t target = 0;
  for (const Pair& pair : plan.pairs().pairs) {
    found.emplace_back(plan.word_rows()[pair.word], plan.context_rows()[plan.pairs().targets[target]]);
    target += pair.targets;
  }
  return found;
}

TEST(Word2vecPlan, PairsNeighborsOfASentence) {
  const Vocabulary vocabulary = small_vocabulary();
  BlockPlan plan(vocabulary, {.window = 1, .negatives = 2, .subsample = 0});
  plan.begin(1, 0);
  plan.add("a unknown b\nc\n d a\n");
  EXPECT_EQ(plan.words(), 5);
  // The word is the neighbor; its true context is the center.
  using P = std::pair<std::int64_t, std::int64_t>;
  EXPECT_THAT(true_pairs(plan), ElementsAre(P(1, 0), P(0, 1), P(0, 3), P(3, 0)));
}

TEST(Word2vecPlan, WindowsShrinkUniformly) {
  const Vocabulary vocabulary = small_vocabulary();
  std::string line;
  for (int i = 0; i < 900; ++i) line += "a ";
  BlockPlan plan(vocabulary, {.window = 5, .negatives = 1, .subsample = 0});
  plan.begin(1, 0);
  for (int i = 0; i < 20; ++i) plan.add(line);
  const double mean = static_cast<double>(plan.pairs().pairs.size()) / (20 * 900);
  EXPECT_NEAR(mean, 6, 0.1) << "twice the mean of 1 to 5";
}

TEST(Word2vecPlan, LongLinesAreSeveralSentences) {
  const Vocabulary vocabulary = small_vocabulary();
  std::string line;
  for (int i = 0; i < 1001; ++i) line += "a ";
  BlockPlan plan(vocabulary, {.window = 1, .negatives = 1, .subsample = 0});
  plan.begin(1, 0);
  plan.add(line);
  EXPECT_EQ(plan.pairs().pairs.size(), 2 * 999) << "the last word is alone";
}

TEST(Word2vecPlan, NegativesDifferFromTheContext) {
  const Vocabulary vocabulary = small_vocabulary();
  BlockPlan plan(vocabulary, {.window = 1, .negatives = 5, .subsample = 0});
  plan.begin(1, 0);
  for (int i = 0; i < 2000; ++i) plan.add("a b\n");
  std::map<std::int64_t, double> negatives;
  double count = 0;
  std::size_t target = 0;
  for (const Pair& pair : plan.pairs().pairs) {
    const auto context = plan.pairs().targets[target];
    for (std::uint32_t t = 1; t < pair.targets; ++t) {
      EXPECT_NE(plan.pairs().targets[target + t], context);
      ++negatives[plan.context_rows()[plan.pairs().targets[target + t]]];
      ++count;
    }
    target += pair.targets;
  }
  EXPECT_EQ(target, plan.pairs().targets.size());
  EXPECT_NEAR(negatives[2] / negatives[3], std::pow(2, 0.75), 0.1);
  EXPECT_LT(count, 5.0 * 4000) << "draws of the context are skipped";
}

TEST(Word2vecPlan, SubsamplingKeepsRareWords) {
  const Vocabulary vocabulary{{"often", "rare"}, {990'000, 10'000}, 1'000'000};
  BlockPlan plan(vocabulary, {.window = 1, .negatives = 1, .subsample = 1e-2});
  plan.begin(1, 0);
  for (int i = 0; i < 20'000; ++i) plan.add("often\n");
  EXPECT_EQ(plan.words(), 20'000);
  EXPECT_TRUE(plan.pairs().pairs.empty()) << "a sentence of one word has no pairs";
  plan.begin(1, 0);
  for (int i = 0; i < 20'000; ++i) plan.add("rare often\n");
  // Each kept "often" is in two pairs with "rare", which is always kept.
  const double kept = static_cast<double>(plan.pairs().pairs.size()) / 2 / 20'000;
  const double ratio = 1e-2 / 0.99;
  EXPECT_NEAR(kept, std::sqrt(ratio) + ratio, 0.01);
}

TEST(Word2vecPlan, DependsOnSeedAndStreamOnly) {
  const Vocabulary vocabulary = small_vocabulary();
  const PlanOptions options{.subsample = 0.5};
  BlockPlan plan(vocabulary, options), other(vocabulary, options);
  const auto targets_of = [](BlockPlan& one, std::uint64_t seed, std::uint64_t stream) {
    one.begin(seed, stream);
    one.add("a b c d a b c d\nb c d a");
    const auto targets = one.pairs().targets;
    const auto rows = one.context_rows();
    return std::pair(std::vector(targets.begin(), targets.end()), std::vector(rows.begin(), rows.end()));
  };
  plan.begin(9, 9);
  plan.add("d d d d");
  EXPECT_EQ(targets_of(plan, 1, 2), targets_of(other, 1, 2));
  EXPECT_NE(targets_of(plan, 1, 2), targets_of(other, 1, 3));
  EXPECT_NE(targets_of(plan, 1, 2), targets_of(other, 2, 2));
}

TEST(Word2vecPlan, NamesEachRowOnce) {
  const Vocabulary vocabulary = small_vocabulary();
  BlockPlan plan(vocabulary, {.window = 2, .negatives = 3, .subsample = 0});
  for (const std::uint64_t stream : {0, 1}) {
    plan.begin(1, stream);
    plan.add("a b a b a b\n");
    for (const auto rows : {plan.word_rows(), plan.context_rows()}) {
      EXPECT_EQ(std::set<std::int64_t>(rows.begin(), rows.end()).size(), rows.size());
    }
    EXPECT_EQ(plan.word_rows().size(), 2);
  }
}

}  // namespace
}  // namespace capstan::train::word2vec

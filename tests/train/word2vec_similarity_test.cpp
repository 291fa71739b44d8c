// word2vec_similarity_test.cpp -- files of scored pairs, rank correlation, and words that are not trained.
#include "train/word2vec/similarity.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "io/temporary_directory.hpp"
#include "support/expect_error.hpp"

namespace capstan::train::word2vec {
namespace {

TEST(Word2vecSimilarity, ReadsPairsWithAnySeparator) {
  const io::TemporaryDirectory directory;
  for (const std::string text : {"Word 1,Word 2,Human (mean)\nlove,sex,6.77\ntiger,Cat,7\n",
                                 "# comment\nlove\tsex\t6.77\r\n\ntiger  Cat 7"}) {
    const auto pairs = read_pairs(directory.write("pairs", text).string());
    ASSERT_EQ(pairs.size(), 2);
    EXPECT_EQ(pairs[0].second, "sex");
    EXPECT_EQ(pairs[0].score, 6.77);
    EXPECT_EQ(pairs[1].second, "Cat");
  }
}

TEST(Word2vecSimilarity, RejectsFilesWithoutPairs) {
  const io::TemporaryDirectory directory;
  expect_error_naming(Code::not_found, {"--similarity", "/missing"}, [] { read_pairs("/missing"); });
  const auto wrong = directory.write("wrong", "a b 1\na b\n").string();
  expect_error_naming(Code::invalid_argument, {wrong + ":2"}, [&] { read_pairs(wrong); });
  const auto number = directory.write("number", "a b 1\na b 1x\n").string();
  expect_error_naming(Code::invalid_argument, {number + ":2"}, [&] { read_pairs(number); });
  for (const std::string score : {"nan", "inf", "-inf"}) {
    const auto infinite = directory.write("infinite", "a b " + score + "\n").string();
    expect_error_naming(Code::invalid_argument, {infinite + ":1", score}, [&] { read_pairs(infinite); });
  }
  const auto empty = directory.write("empty", "w1 w2 score\n").string();
  expect_error_naming(Code::invalid_argument, {"--similarity", empty}, [&] { read_pairs(empty); });
}

TEST(Word2vecSimilarity, RankCorrelation) {
  const std::vector<double> rising{1, 2, 3, 4}, squares{1, 4, 9, 16}, falling{4, 3, 2, 1}, equal{5, 5, 5, 5};
  EXPECT_DOUBLE_EQ(spearman(rising, squares), 1);
  EXPECT_DOUBLE_EQ(spearman(rising, falling), -1);
  EXPECT_TRUE(std::isnan(spearman(rising, equal)));
  // scipy.stats.spearmanr([1, 2, 2, 4], [1, 3, 2, 4]) = 0.9486832980505138
  EXPECT_NEAR(spearman(std::vector<double>{1, 2, 2, 4}, std::vector<double>{1, 3, 2, 4}), 0.9486832980505138,
              1e-12);
}

TEST(Word2vecSimilarity, ComparesCosinesOfTrainedWords) {
  const Vocabulary vocabulary{{"a", "b", "c", "B"}, {4, 3, 2, 1}, 10};
  const std::vector<float> table{1, 0, 3, 0.1F, 0, 2, -1, 0};
  const auto read = [&](std::span<const std::int64_t> rows) {
    std::vector<float> out;
    for (const std::int64_t row : rows) {
      out.push_back(table[static_cast<std::size_t>(2 * row)]);
      out.push_back(table[static_cast<std::size_t>(2 * row + 1)]);
    }
    return out;
  };
  // Cosines: almost 1; 0; -1 ("B" is trained, so it is not looked up as "b"). "A" is found as "a".
  const std::vector<ScoredPair> pairs{{"A", "b", 9}, {"a", "c", 5}, {"x", "a", 7}, {"a", "B", 1}};
  const Similarity found = similarity(pairs, vocabulary, read);
  EXPECT_EQ(found.pairs, 3);
  EXPECT_EQ(found.total, 4);
  EXPECT_DOUBLE_EQ(found.spearman, 1);
  EXPECT_TRUE(std::isnan(similarity(std::vector<ScoredPair>{{"x", "y", 1}}, vocabulary, read).spearman));
}

}  // namespace
}  // namespace capstan::train::word2vec

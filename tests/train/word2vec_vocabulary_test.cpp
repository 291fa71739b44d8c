// word2vec_vocabulary_test.cpp -- merged counts of pieces, and the order and limits of the vocabulary.
#include "train/word2vec/vocabulary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_directory.hpp"
#include "support/expect_error.hpp"

namespace capstan::train::word2vec {
namespace {

using testing::ElementsAre;

TEST(Word2vecVocabulary, CountsOfPiecesAddUpToThoseOfTheText) {
  const io::TemporaryDirectory directory;
  const auto first = directory.write("1", "der Käse der\nKäse über der").string();
  const auto second = directory.write("2", "über Käse\n\n  der x").string();
  const auto files = list_corpus({first, second});
  for (std::int64_t bytes = 1; bytes <= 60; ++bytes) {
    VocabularyBuilder builder;
    for (const Piece& piece : divide(files, bytes)) builder.add(count_words(piece));
    const Vocabulary vocabulary = builder.build(2);
    EXPECT_EQ(builder.corpus_words(), 10) << bytes;
    EXPECT_THAT(vocabulary.words, ElementsAre("der", "Käse", "über")) << bytes;
    EXPECT_THAT(vocabulary.counts, ElementsAre(4, 3, 2)) << bytes;
    EXPECT_EQ(vocabulary.total, 9) << bytes;
  }
}

TEST(Word2vecVocabulary, WordsOfEqualCountsAreInTheOrderOfTheirBytes) {
  VocabularyBuilder builder;
  builder.add({{"b", 1}, {"é", 1}, {"a", 1}});
  builder.add({{"c", 2}});
  EXPECT_THAT(builder.build(1).words, ElementsAre("c", "a", "b", "é"));
}

TEST(Word2vecVocabulary, RejectsTextWithFewerThanTwoWords) {
  VocabularyBuilder builder;
  expect_error_naming(Code::invalid_argument, {"--data"}, [&] { builder.build(1); });
  builder.add({{"a", 7}, {"b", 2}});
  expect_error_naming(Code::invalid_argument, {"--min-count 8", "0 words", "7 times"},
                      [&] { builder.build(8); });
  expect_error_naming(Code::invalid_argument, {"--min-count 3", "1 words"}, [&] { builder.build(3); });
  EXPECT_EQ(builder.build(2).words.size(), 2);
}

TEST(Word2vecVocabulary, IndexFindsRows) {
  const std::vector<std::string> words{"a", "bc"};
  const WordIndex index(words);
  EXPECT_EQ(index.row_of("a"), 0);
  EXPECT_EQ(index.row_of("bc"), 1);
  EXPECT_EQ(index.row_of("b"), WordIndex::kUnknown);
}

}  // namespace
}  // namespace capstan::train::word2vec

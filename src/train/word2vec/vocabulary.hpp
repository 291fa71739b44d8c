// vocabulary.hpp -- counts of words, collected from pieces of the corpus, and the words that are trained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "train/word2vec/corpus.hpp"

namespace capstan::train::word2vec {

using WordCounts = std::vector<std::pair<std::string, std::int64_t>>;

/// Counts the words of a piece, in any order. Throws as CorpusReader::read() does.
WordCounts count_words(const Piece& piece);

/// The trained words, the most frequent first; words of equal counts are in the order of their bytes. The
/// index of a word is its row.
struct Vocabulary {
  std::vector<std::string> words;
  std::vector<std::int64_t> counts;
  std::int64_t total = 0;  // sum of the counts
};

/// Sums counts of several pieces.
class VocabularyBuilder {
 public:
  void add(const WordCounts& counts);
  /// Number of words in the corpus, with repetitions.
  std::int64_t corpus_words() const noexcept { return corpus_words_; }
  /// Returns the words that occur at least `min_count` times. Throws Error(invalid_argument) for fewer than
  /// two: a word needs another one as a negative.
  Vocabulary build(std::int64_t min_count) const;

 private:
  std::unordered_map<std::string, std::int64_t> counts_;
  std::int64_t corpus_words_ = 0;
};

/// Rows by word.
class WordIndex {
 public:
  static constexpr std::int32_t kUnknown = -1;
  /// `words` must outlive this object.
  explicit WordIndex(const std::vector<std::string>& words);
  /// Returns kUnknown for a word that is not trained.
  std::int32_t row_of(std::string_view word) const {
    const auto found = rows_.find(word);
    return found == rows_.end() ? kUnknown : found->second;
  }

 private:
  std::unordered_map<std::string_view, std::int32_t> rows_;
};

}  // namespace capstan::train::word2vec

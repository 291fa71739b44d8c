// vocabulary.cpp -- see vocabulary.hpp.
#include "train/word2vec/vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "capstan/error.hpp"

namespace capstan::train::word2vec {

WordCounts count_words(const Piece& piece) {
  std::unordered_map<std::string_view, std::int64_t> counts;
  std::vector<std::string> texts;  // the keys refer to them
  texts.reserve(piece.size());
  CorpusReader reader;
  for (const ByteRange& range : piece) {
    texts.push_back(reader.read(range));
    for_each_word(
        texts.back(), [&](std::string_view word) { ++counts[word]; }, [] {});
  }
  return {counts.begin(), counts.end()};
}

void VocabularyBuilder::add(const WordCounts& counts) {
  for (const auto& [word, count] : counts) {
    counts_[word] += count;
    corpus_words_ += count;
  }
}

Vocabulary VocabularyBuilder::build(std::int64_t min_count) const {
  if (counts_.empty()) {
    throw Error(Code::invalid_argument, "--data: found only white space, expected words");
  }
  std::vector<std::pair<std::string, std::int64_t>> kept;
  std::int64_t largest = 0;
  for (const auto& [word, count] : counts_) {
    if (count >= min_count) kept.emplace_back(word, count);
    largest = std::max(largest, count);
  }
  if (kept.size() < 2) {
    throw Error(Code::invalid_argument,
                fmt::format("--min-count {}: found {} words that occur that often, expected at least 2; the "
                            "most frequent one occurs {} times",
                            min_count, kept.size(), largest));
  }
  std::ranges::sort(kept, [](const auto& a, const auto& b) {
    return std::tuple(-a.second, std::string_view(a.first)) <
           std::tuple(-b.second, std::string_view(b.first));
  });
  Vocabulary vocabulary;
  for (auto& [word, count] : kept) {
    vocabulary.words.push_back(std::move(word));
    vocabulary.counts.push_back(count);
    vocabulary.total += count;
  }
  return vocabulary;
}

WordIndex::WordIndex(const std::vector<std::string>& words) {
  rows_.reserve(words.size());
  for (std::size_t row = 0; row < words.size(); ++row) {
    rows_.emplace(words[row], static_cast<std::int32_t>(row));
  }
}

}  // namespace capstan::train::word2vec

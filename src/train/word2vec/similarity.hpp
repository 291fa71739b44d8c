// similarity.hpp -- pairs of words with human scores, as in WordSim-353, and how well rows agree with them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "train/word2vec/vocabulary.hpp"

namespace capstan::train::word2vec {

struct ScoredPair {
  std::string first;
  std::string second;
  double score = 0;
};

/// Reads lines of two words and a score, separated by tabs, commas or spaces. Skips empty lines, lines that
/// begin with #, and a first line without a score. Throws Error: not_found; invalid_argument "file:line:
/// ...".
std::vector<ScoredPair> read_pairs(const std::string& path);

/// Spearman's rank correlation; equal values have their mean rank. NaN for fewer than two values, or if all
/// values of a side are equal. REQUIRES: equal sizes.
double spearman(std::span<const double> a, std::span<const double> b);

struct Similarity {
  double spearman = 0;
  std::int64_t pairs = 0;  // both of whose words are trained
  std::int64_t total = 0;
};

/// Compares the scores with the cosines of the rows. A word that is not trained is looked up in lower case.
/// `read_rows` returns the rows one after another, `dim` floats each.
Similarity similarity(std::span<const ScoredPair> pairs, const Vocabulary& vocabulary,
                      const std::function<std::vector<float>(std::span<const std::int64_t>)>& read_rows);

}  // namespace capstan::train::word2vec

// similarity.cpp -- see similarity.hpp.
#include "train/word2vec/similarity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <optional>

#include "base/assert.hpp"
#include "capstan/error.hpp"

namespace capstan::train::word2vec {
namespace {

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c != ',' && !is_space(c)) {
      fields.back() += c;
    } else if (!fields.back().empty()) {
      fields.emplace_back();
    }
  }
  if (fields.back().empty()) fields.pop_back();
  return fields;
}

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Ranks from 0; equal values have their mean rank.
std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i) ranks[order[i]] = static_cast<double>(first + end - 1) / 2;
    first = end;
  }
  return ranks;
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::int32_t row_of(const WordIndex& index, const std::string& word) {
  const std::int32_t row = index.row_of(word);
  if (row != WordIndex::kUnknown) return row;
  std::string lower = word;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return index.row_of(lower);
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0, norm_a = 0, norm_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    product += x * y;
    norm_a += x * x;
    norm_b += y * y;
  }
  const double norms = std::sqrt(norm_a * norm_b);
  return norms > 0 ? product / norms : 0;
}

}  // namespace

std::vector<ScoredPair> read_pairs(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw Error(Code::not_found,
                fmt::format("--similarity: cannot read {}, expected a file of word pairs", path));
  }
  std::vector<ScoredPair> pairs;
  std::string line;
  for (int lines = 1; std::getline(file, line); ++lines) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.empty() || fields[0].starts_with('#')) continue;
    const std::optional<double> score = fields.size() == 3 ? number(fields[2]) : std::nullopt;
    if (score && !std::isfinite(*score)) {
      throw Error(
          Code::invalid_argument,
          fmt::format("{}:{}: found the score \"{}\", expected a finite number", path, lines, fields[2]));
    }
    if (score) {
      pairs.push_back({fields[0], fields[1], *score});
    } else if (lines > 1) {
      throw Error(Code::invalid_argument,
                  fmt::format("{}:{}: found \"{}\", expected two words and a score", path, lines, line));
    }
  }
  if (pairs.empty()) {
    throw Error(
        Code::invalid_argument,
        fmt::format("--similarity: found no pairs in {}, expected lines of two words and a score", path));
  }
  return pairs;
}

double spearman(std::span<const double> a, std::span<const double> b) {
  CAPSTAN_ASSERT(a.size() == b.size());
  const std::vector<double> ranks_a = ranks_of(a), ranks_b = ranks_of(b);
  const double mean_a = mean(ranks_a), mean_b = mean(ranks_b);
  double product = 0, square_a = 0, square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = ranks_a[i] - mean_a, y = ranks_b[i] - mean_b;
    product += x * y;
    square_a += x * x;
    square_b += y * y;
  }
  if (square_a == 0 || square_b == 0) return std::numeric_limits<double>::quiet_NaN();
  return product / std::sqrt(square_a * square_b);
}

Similarity similarity(std::span<const ScoredPair> pairs, const Vocabulary& vocabulary,
                      const std::function<std::vector<float>(std::span<const std::int64_t>)>& read_rows) {
  const WordIndex index(vocabulary.words);
  std::vector<std::int64_t> rows;  // two for each pair
  std::vector<double> scores, cosines;
  for (const ScoredPair& pair : pairs) {
    const std::int32_t first = row_of(index, pair.first), second = row_of(index, pair.second);
    if (first == WordIndex::kUnknown || second == WordIndex::kUnknown) continue;
    rows.insert(rows.end(), {first, second});
    scores.push_back(pair.score);
  }
  const std::vector<float> values = rows.empty() ? std::vector<float>() : read_rows(rows);
  const std::size_t dim = rows.empty() ? 0 : values.size() / rows.size();
  const std::span<const float> all(values);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    cosines.push_back(cosine(all.subspan(2 * i * dim, dim), all.subspan((2 * i + 1) * dim, dim)));
  }
  return {spearman(scores, cosines), static_cast<std::int64_t>(scores.size()),
          static_cast<std::int64_t>(pairs.size())};
}

}  // namespace capstan::train::word2vec

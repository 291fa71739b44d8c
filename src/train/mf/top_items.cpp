// top_items.cpp -- sorts only the first kTopItems.
#include "train/mf/top_items.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace capstan::train::mf {
namespace {

constexpr float kLast = -std::numeric_limits<float>::infinity();

/// Value of a hit at `place`, counted from 0.
double discount(std::size_t place) { return 1 / std::log2(static_cast<double>(place) + 2); }

}  // namespace

RankingQuality rank_items(std::span<float> scores, std::span<const std::int32_t> known,
                          std::span<const std::int32_t> wanted) {
  for (float& score : scores) {
    if (std::isnan(score)) score = kLast;
  }
  for (const std::int32_t item : known) {
    if (static_cast<std::size_t>(item) < scores.size()) scores[static_cast<std::size_t>(item)] = kLast;
  }
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t top = std::min(kTopItems, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top), order.end(),
                    [&](std::int32_t a, std::int32_t b) {
                      const float x = scores[static_cast<std::size_t>(a)];
                      const float y = scores[static_cast<std::size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  double hits = 0, gain = 0, ideal = 0;
  for (std::size_t place = 0; place < top; ++place) {
    if (!std::binary_search(wanted.begin(), wanted.end(), order[place])) continue;
    hits += 1;
    gain += discount(place);
  }
  for (std::size_t place = 0; place < std::min(kTopItems, wanted.size()); ++place) ideal += discount(place);
  return {hits / static_cast<double>(wanted.size()), gain / ideal};
}

}  // namespace capstan::train::mf

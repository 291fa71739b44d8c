// top_items.hpp -- recall and NDCG of the items with a user's highest scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capstan::train::mf {

/// Number of items that are recommended to a user.
inline constexpr std::size_t kTopItems = 20;

struct RankingQuality {
  double recall = 0;
  double ndcg = 0;
};

/// Ranks all items by score, except those of `known`, and compares the first kTopItems with `wanted`, which
/// is sorted, not empty, and has no item of `known`. Of equal scores, the lower item ranks first; NaN ranks
/// last. Items of `wanted` without a score are misses, those of `known` are ignored. Overwrites `scores`.
///
/// Recall is the share of `wanted` in the first kTopItems. NDCG is the sum of 1 / log2(rank + 1) over these
/// items, divided by the largest sum that a ranking can reach.
RankingQuality rank_items(std::span<float> scores, std::span<const std::int32_t> known,
                          std::span<const std::int32_t> wanted);

}  // namespace capstan::train::mf

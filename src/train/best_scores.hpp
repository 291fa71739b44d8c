// best_scores.hpp -- the highest of many scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace capstan::train {

/// Keeps the `count` highest scores. Of equal scores, the lower id ranks first; NaN ranks last.
class BestScores {
 public:
  explicit BestScores(std::size_t count) : count_(count) {}

  void add(double score, std::int64_t id) {
    best_.emplace_back(std::isnan(score) ? std::numeric_limits<double>::infinity() : -score, id);
    if (best_.size() >= 2 * count_ + kSlack) prune();
  }
  /// Returns pairs of score and id, best first.
  std::vector<std::pair<double, std::int64_t>> take() {
    prune();
    for (auto& [score, id] : best_) score = -score;
    return std::move(best_);
  }

 private:
  static constexpr std::size_t kSlack = 8192;  // a prune sorts many scores at once

  void prune() {
    const std::size_t kept = std::min(count_, best_.size());
    std::partial_sort(best_.begin(), best_.begin() + static_cast<std::ptrdiff_t>(kept), best_.end());
    best_.resize(kept);
  }

  std::size_t count_;
  std::vector<std::pair<double, std::int64_t>> best_;  // minus the score, so that ties keep the order of ids
};

}  // namespace capstan::train

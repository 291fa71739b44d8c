// user_ranking.cpp -- scores of all items by matrix products, for batches of users.
#include "train/mf/user_ranking.hpp"

#include <algorithm>
#include <utility>

#include "train/blas.hpp"
#include "train/mf/top_items.hpp"

namespace capstan::train::mf {
namespace {

/// Bounds the memory of the scores of a batch of users.
constexpr std::int64_t kEvaluationScores = 1 << 22;
constexpr std::int64_t kEvaluationUsers = 256;

/// Scores all items for some users, and compares the best with the items that each user wants.
class UserRanking {
 public:
  UserRanking(const HeldOut& held_out, const EmbeddingTable<Variable>& users,
              const EmbeddingTable<Variable>& items)
      : held_out_(held_out),
        users_(users),
        width_(items.width()),
        count_(items.rows()),
        items_(count_ * width_) {
    use_one_blas_thread();
    items.pull(0, items_);
  }
  std::int64_t batch() const {
    return std::clamp<std::int64_t>(kEvaluationScores / static_cast<std::int64_t>(count_), 1,
                                    kEvaluationUsers);
  }

  void add(std::span<const std::int32_t> users, Scores& scores) {
    const std::size_t factors = width_ - 1;
    std::vector<std::int64_t> rows;
    for (const std::int32_t user : users) {
      if (static_cast<std::uint64_t>(user) < users_.rows()) rows.push_back(user);
    }
    // Users without a row are last, because their numbers are the largest: biases alone rank their items.
    rows_.resize(rows.size() * width_);
    users_.lookup(rows, rows_);
    scores_.resize(users.size() * count_);
    for (std::size_t at = 0; at < scores_.size(); ++at) scores_[at] = items_[at % count_ * width_ + factors];
    multiply(Transposed::no, Transposed::yes, static_cast<std::int64_t>(rows.size()),
             static_cast<std::int64_t>(count_), static_cast<std::int64_t>(factors), 1, rows_.data(),
             static_cast<std::int64_t>(width_), items_.data(), static_cast<std::int64_t>(width_), 1,
             scores_.data(), static_cast<std::int64_t>(count_));
    for (std::size_t i = 0; i < users.size(); ++i) {
      const RankingQuality quality = rank_items(std::span(scores_).subspan(i * count_, count_),
                                                held_out_.known[users[i]], held_out_.wanted[users[i]]);
      ++scores.examples;
      scores.sums["recall@20"] += quality.recall;
      scores.sums["ndcg@20"] += quality.ndcg;
    }
  }

 private:
  const HeldOut& held_out_;
  const EmbeddingTable<Variable>& users_;
  std::size_t width_;  // of a row
  std::size_t count_;  // of items
  std::vector<float> items_, rows_, scores_;
};

}  // namespace

HeldOut make_held_out(std::span<const Rating> known, std::vector<Rating> ratings, const std::string& file) {
  HeldOut found{.known = ItemsByUser(known)};
  const bool is_empty = ratings.empty();
  std::erase_if(ratings, [&](const Rating& one) { return found.known.contains(one.user, one.item); });
  if (ratings.empty() && !is_empty) {
    throw Error(Code::invalid_argument,
                file + ": all held-out pairs are training pairs too, expected at least one other pair");
  }
  found.wanted = ItemsByUser(ratings);
  for (std::int64_t user = 0; user < found.wanted.users(); ++user) {
    if (!found.wanted[user].empty()) found.users.push_back(static_cast<std::int32_t>(user));
  }
  return found;
}

Scores rank_held_out(const HeldOut& held_out, const EvaluateTask& task, const EmbeddingTable<Variable>& users,
                     const EmbeddingTable<Variable>& items) {
  UserRanking ranking(held_out, users, items);
  std::vector<std::int32_t> chosen;
  for (std::int64_t i = task.first; i < task.first + task.count; ++i) {
    chosen.push_back(held_out.users[static_cast<std::size_t>(task.share + i * task.total_shares)]);
  }
  Scores scores;
  const auto batch = static_cast<std::size_t>(ranking.batch());
  for (std::size_t first = 0; first < chosen.size(); first += batch) {
    ranking.add(std::span(chosen).subspan(first, std::min(batch, chosen.size() - first)), scores);
  }
  return scores;
}

}  // namespace capstan::train::mf

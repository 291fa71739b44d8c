// user_ranking.hpp -- held-out items of users, and their ranks among all items.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "capstan/capstan.hpp"
#include "train/embedding_table.hpp"
#include "train/metrics.hpp"
#include "train/mf/ratings.hpp"
#include "train/tasks.hpp"

namespace capstan::train::mf {

/// Pairs of implicit feedback that are held out.
struct HeldOut {
  ItemsByUser known = {};                // items that are not ranked: those of all earlier parts of the data
  ItemsByUser wanted = {};               // held-out items that are not in `known`
  std::vector<std::int32_t> users = {};  // with an item in `wanted`, in ascending order
};

/// `known` has the ratings whose items are not ranked. Throws Error: invalid_argument "FILE: ..." if `known`
/// has all pairs of `ratings`, unless `ratings` is empty.
HeldOut make_held_out(std::span<const Rating> known, std::vector<Rating> ratings, const std::string& file);

/// Scores all items for the task's users, and sums "recall@20" and "ndcg@20" of their held-out items. A row
/// of a table has the factors, then the bias. Users without a row get the items of the highest biases.
Scores rank_held_out(const HeldOut& held_out, const EvaluateTask& task, const EmbeddingTable<Variable>& users,
                     const EmbeddingTable<Variable>& items);

}  // namespace capstan::train::mf

// bpr.hpp -- Bayesian personalized ranking of implicit feedback (Rendle et al., UAI 2009): negative items and
// gradients of a batch of pairs.
//
//   score(u, i) = b_i + <p_u, q_i>
//   loss = sum over triples (u, i, j) of -log sigmoid(score(u, i) - score(u, j))
//          + l2 (|p_u|^2 + |q_i|^2 + |q_j|^2 + b_i^2 + b_j^2)
//
// where user u has item i, and not item j.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "train/counter_rng.hpp"
#include "train/mf/factorization.hpp"
#include "train/mf/ratings.hpp"

namespace capstan::train::mf {

/// Users and items are numbered within the batch.
struct PairBatch {
  std::vector<std::uint32_t> users = {};
  std::vector<std::uint32_t> positives = {};
  std::vector<std::uint32_t> negatives = {};

  std::size_t size() const noexcept { return users.size(); }
  void clear() noexcept {
    users.clear();
    positives.clear();
    negatives.clear();
  }
};

/// Draws one of `items` items uniformly from those that the user does not have. Returns nullopt if no draw of
/// 100 is such an item, as for a user that has all of them.
std::optional<std::int32_t> draw_negative(const ItemsByUser& known, std::int32_t user, std::int64_t items,
                                          const CounterRng& random);

/// Adds the gradient of `scale` times the loss to `gradients`. Returns the loss. The bias of a user has no
/// effect and no gradient.
BatchLoss add_pair_gradients(const PairBatch& batch, const BatchRows& rows,
                             const FactorizationOptions& options, double scale, BatchRows& gradients);

}  // namespace capstan::train::mf

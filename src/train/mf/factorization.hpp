// factorization.hpp -- matrix factorization with biases (Koren, Bell, Volinsky, Computer 2009): predictions
// and gradients of a batch of ratings.
//
//   rating(u, i) = mean + b_u + b_i + <p_u, q_i>
//   loss = sum over ratings of (rating - prediction)^2 + l2 (|p_u|^2 + |q_i|^2 + b_u^2 + b_i^2)
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace capstan::train::mf {

/// Values or gradients of the rows of a batch. A row has the factors, then the bias.
struct BatchRows {
  std::vector<float> users = {};
  std::vector<float> items = {};
};

/// Rating n is values[n], of item items[n] by user users[n]. Users and items are numbered within the batch.
struct RatingBatch {
  /// Number of a user or item that has no row: its bias and its factors count as 0.
  static constexpr std::uint32_t kNoRow = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::uint32_t> users = {};
  std::vector<std::uint32_t> items = {};
  std::vector<float> values = {};

  std::size_t size() const noexcept { return users.size(); }
  void clear() noexcept {
    users.clear();
    items.clear();
    values.clear();
  }
};

/// Sums over a batch.
struct BatchLoss {
  double loss = 0;     // without the penalty
  double penalty = 0;  // of L2
};

struct FactorizationOptions {
  std::size_t factors = 0;
  double l2 = 0;
  std::size_t width() const noexcept { return factors + 1; }
};

/// Returns the prediction for rating n of the batch.
double predict(const RatingBatch& batch, std::size_t n, const BatchRows& rows, std::size_t factors,
               double mean);

/// Adds the gradient of `scale` times the loss to `gradients`. Returns the loss. REQUIRES: all users and
/// items of the batch have rows.
BatchLoss add_rating_gradients(const RatingBatch& batch, const BatchRows& rows,
                               const FactorizationOptions& options, double mean, double scale,
                               BatchRows& gradients);

}  // namespace capstan::train::mf

// factorization.cpp -- each rating adds to the gradients of its two rows.
#include "train/mf/factorization.hpp"

#include "base/assert.hpp"
#include "train/kge/kernels.hpp"

namespace capstan::train::mf {

double predict(const RatingBatch& batch, std::size_t n, const BatchRows& rows, std::size_t factors,
               double mean) {
  const std::size_t width = factors + 1;
  const bool has_user = batch.users[n] != RatingBatch::kNoRow;
  const bool has_item = batch.items[n] != RatingBatch::kNoRow;
  const float* user = has_user ? rows.users.data() + batch.users[n] * width : nullptr;
  const float* item = has_item ? rows.items.data() + batch.items[n] * width : nullptr;
  double prediction = mean;
  if (has_user) prediction += static_cast<double>(user[factors]);
  if (has_item) prediction += static_cast<double>(item[factors]);
  if (has_user && has_item) prediction += static_cast<double>(kge::dot(user, item, factors));
  return prediction;
}

BatchLoss add_rating_gradients(const RatingBatch& batch, const BatchRows& rows,
                               const FactorizationOptions& options, double mean, double scale,
                               BatchRows& gradients) {
  const std::size_t factors = options.factors, width = options.width();
  const auto decay = static_cast<float>(2 * scale * options.l2);
  BatchLoss sum;
  for (std::size_t n = 0; n < batch.size(); ++n) {
    CAPSTAN_ASSERT(batch.users[n] != RatingBatch::kNoRow && batch.items[n] != RatingBatch::kNoRow);
    const float* user = rows.users.data() + batch.users[n] * width;
    const float* item = rows.items.data() + batch.items[n] * width;
    float* user_gradient = gradients.users.data() + batch.users[n] * width;
    float* item_gradient = gradients.items.data() + batch.items[n] * width;
    const double error = static_cast<double>(batch.values[n]) - predict(batch, n, rows, factors, mean);
    const auto slope = static_cast<float>(-2 * scale * error);
    kge::add_scaled(slope, item, user_gradient, factors);
    kge::add_scaled(slope, user, item_gradient, factors);
    user_gradient[factors] += slope;
    item_gradient[factors] += slope;
    sum.loss += error * error;
    if (options.l2 == 0) continue;
    kge::add_scaled(decay, user, user_gradient, width);
    kge::add_scaled(decay, item, item_gradient, width);
    sum.penalty +=
        options.l2 * static_cast<double>(kge::dot(user, user, width) + kge::dot(item, item, width));
  }
  return sum;
}

}  // namespace capstan::train::mf

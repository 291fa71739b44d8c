// bpr.cpp -- each triple adds to the gradients of one user and two items.
#include "train/mf/bpr.hpp"

#include "train/kge/kernels.hpp"
#include "train/log_loss.hpp"

namespace capstan::train::mf {
namespace {

constexpr std::uint64_t kDraws = 100;

}  // namespace

std::optional<std::int32_t> draw_negative(const ItemsByUser& known, std::int32_t user, std::int64_t items,
                                          const CounterRng& random) {
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const auto item = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(items), draw));
    if (!known.contains(user, item)) return item;
  }
  return std::nullopt;
}

BatchLoss add_pair_gradients(const PairBatch& batch, const BatchRows& rows,
                             const FactorizationOptions& options, double scale, BatchRows& gradients) {
  const std::size_t factors = options.factors, width = options.width();
  const auto decay = static_cast<float>(2 * scale * options.l2);
  BatchLoss sum;
  for (std::size_t n = 0; n < batch.size(); ++n) {
    const float* user = rows.users.data() + batch.users[n] * width;
    const float* positive = rows.items.data() + batch.positives[n] * width;
    const float* negative = rows.items.data() + batch.negatives[n] * width;
    float* user_gradient = gradients.users.data() + batch.users[n] * width;
    float* positive_gradient = gradients.items.data() + batch.positives[n] * width;
    float* negative_gradient = gradients.items.data() + batch.negatives[n] * width;
    const double margin =
        static_cast<double>(positive[factors]) - static_cast<double>(negative[factors]) +
        static_cast<double>(kge::dot(user, positive, factors) - kge::dot(user, negative, factors));
    const auto slope = static_cast<float>(scale * log_loss_slope(margin, true));
    kge::add_scaled(slope, positive, user_gradient, factors);
    kge::add_scaled(-slope, negative, user_gradient, factors);
    kge::add_scaled(slope, user, positive_gradient, factors);
    kge::add_scaled(-slope, user, negative_gradient, factors);
    positive_gradient[factors] += slope;
    negative_gradient[factors] -= slope;
    sum.loss += log_loss(margin, true);
    if (options.l2 == 0) continue;
    kge::add_scaled(decay, user, user_gradient, factors);
    kge::add_scaled(decay, positive, positive_gradient, width);
    kge::add_scaled(decay, negative, negative_gradient, width);
    sum.penalty +=
        options.l2 * static_cast<double>(kge::dot(user, user, factors) + kge::dot(positive, positive, width) +
                                         kge::dot(negative, negative, width));
  }
  return sum;
}

}  // namespace capstan::train::mf

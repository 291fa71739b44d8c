// log_loss.hpp -- log-loss of a two-class example from its logit, in double and without overflow.
#pragma once

#include <algorithm>
#include <cmath>

namespace capstan::train {

/// Returns -log(p), where p is the probability that the model assigns to the label; for a positive label,
/// this is log(1 + exp(-logit)).
inline double log_loss(double logit, bool positive) {
  const double margin = positive ? logit : -logit;
  return std::max(-margin, 0.0) + std::log1p(std::exp(-std::abs(margin)));
}

/// Returns the derivative of log_loss with respect to the logit: probability - label.
inline double log_loss_slope(double logit, bool positive) {
  const double e = std::exp(-std::abs(logit));
  const double probability = (logit > 0 ? 1 : e) / (1 + e);
  const double complement = (logit > 0 ? e : 1) / (1 + e);  // 1 - probability would round to 0
  return positive ? -complement : probability;
}

}  // namespace capstan::train

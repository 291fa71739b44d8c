// l2_penalty.hpp -- strengths of the L2 penalty of models of clicks, and their defaults.
#pragma once

#include <cstdint>
#include <optional>

namespace capstan::train {

/// The penalty weights / 2 |w|^2 + factors / 2 |v|^2 on the mean log-loss. The bias is not penalized.
struct L2Penalty {
  double weights = 0;
  double factors = 0;

  bool any() const noexcept { return weights > 0 || factors > 0; }
};

/// The strengths that the settings give.
struct L2Options {
  std::optional<double> weights = {};  // --l2
  std::optional<double> factors = {};  // --factor-l2; unset: `weights` if that is set
  // The constants of the defaults, chosen on validation examples of click logs: docs/training.md.
  double weights_constant = 15;
  double factors_constant = 300;

  /// Returns the strengths for a number of training examples. A strength that no setting determines is a
  /// constant divided by the number of examples. This is a Gaussian prior whose variance does not depend on
  /// the data.
  L2Penalty for_examples(std::int64_t examples) const noexcept {
    const auto count = static_cast<double>(examples);
    return {.weights = weights.value_or(weights_constant / count),
            .factors = factors.value_or(weights.value_or(factors_constant / count))};
  }
};

}  // namespace capstan::train

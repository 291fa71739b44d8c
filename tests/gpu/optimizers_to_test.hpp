// optimizers_to_test.hpp -- every update rule, with several sets of constants if they select different
// formulas.
#pragma once

#include <vector>

#include "capstan/optimizers.hpp"

namespace capstan::gpu {

inline const std::vector<Optimizer>& optimizers_to_test() {
  static const std::vector<Optimizer> all = {
      optimizers::SGD{0.1},
      optimizers::Momentum{.learning_rate = 0.1},
      optimizers::Momentum{.learning_rate = 0.1, .momentum = 0.5, .nesterov = true},
      optimizers::Adagrad{.learning_rate = 0.1},
      optimizers::RMSProp{.learning_rate = 0.01, .rho = 0.5, .epsilon = 1e-2},
      optimizers::Adam{.learning_rate = 0.01},
      optimizers::AdamW{.learning_rate = 0.01, .weight_decay = 0.5},
      optimizers::FTRL{.learning_rate = 0.5, .initial_accumulator = 0},
      optimizers::FTRL{.learning_rate = 0.1, .l1 = 0.5, .l2 = 0.25, .l2_shrinkage = 0.125, .beta = 1},
      optimizers::FTRL{.learning_rate = 0.1, .learning_rate_power = -0.25, .l1 = 0.1},
  };
  return all;
}

/// Initial value of the first slot.
inline double first_slot(const Optimizer& o) {
  const bool has_accumulator = o.kind == OptimizerKind::adagrad || o.kind == OptimizerKind::ftrl;
  return has_accumulator ? o.initial_accumulator : 0;
}

}  // namespace capstan::gpu

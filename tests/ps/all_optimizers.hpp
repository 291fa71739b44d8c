// all_optimizers.hpp -- one optimizer of each kind, for tests that a ps treats all kinds alike.
#pragma once

#include <vector>

#include "capstan/optimizers.hpp"

namespace capstan::ps {

/// The rate must be one that FTRL supports.
inline std::vector<Optimizer> all_optimizers(const LearningRate& rate) {
  return {optimizers::SGD{rate},
          optimizers::Momentum{rate},
          optimizers::Momentum{.learning_rate = rate, .nesterov = true},
          optimizers::Adagrad{rate},
          optimizers::RMSProp{rate},
          optimizers::Adam{rate},
          optimizers::AdamW{.learning_rate = rate, .weight_decay = 0.5},
          optimizers::FTRL{.learning_rate = rate, .initial_accumulator = 0.5, .l1 = 0.25}};
}

}  // namespace capstan::ps

// descriptor.cpp -- optimizers in words.
#include "shard/descriptor.hpp"

#include <fmt/format.h>

namespace capstan {

std::string_view to_string(OptimizerKind kind) noexcept {
  switch (kind) {
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::adagrad:
      return "adagrad";
    case OptimizerKind::adam:
      return "adam";
  }
  return "unknown optimizer";
}

namespace shard {

std::string describe(const Optimizer& o) {
  switch (o.kind) {
    case OptimizerKind::sgd:
      return fmt::format("sgd(learning_rate={})", o.learning_rate);
    case OptimizerKind::adagrad:
      return fmt::format("adagrad(learning_rate={}, initial_accumulator={}, epsilon={})", o.learning_rate,
                         o.initial_accumulator, o.epsilon);
    case OptimizerKind::adam:
      return fmt::format("adam(learning_rate={}, beta1={}, beta2={}, epsilon={})", o.learning_rate, o.beta1,
                         o.beta2, o.epsilon);
  }
  return "unknown optimizer";
}

std::vector<std::string> slots_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd:
      return {};
    case OptimizerKind::adagrad:
      return {"accumulator"};
    case OptimizerKind::adam:
      return {"m", "v"};
  }
  return {};
}

}  // namespace shard
}  // namespace capstan

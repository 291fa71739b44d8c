// optimizers.cpp -- their names.
#include "capstan/optimizers.hpp"

namespace capstan {

std::string_view to_string(OptimizerKind kind) noexcept {
  switch (kind) {
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::adagrad:
      return "adagrad";
    case OptimizerKind::adam:
      return "adam";
    case OptimizerKind::momentum:
      return "momentum";
    case OptimizerKind::rmsprop:
      return "rmsprop";
    case OptimizerKind::adamw:
      return "adamw";
    case OptimizerKind::ftrl:
      return "ftrl";
  }
  return "unknown optimizer";
}

}  // namespace capstan

// optimizer_choice.hpp -- the Optimizer that --optimizer, --learning-rate, --momentum and --nesterov select.
#pragma once

#include <string_view>

#include "capstan/optimizers.hpp"

namespace capstan {
class Settings;
}

namespace capstan::train {

/// Returns the selected optimizer, or `fallback`, the program's default, if none is set. `rate` is the
/// default learning rate of Adagrad and FTRL. Their initial accumulator is 0, since the scale of the
/// gradients is not known in advance; FTRL then equals Adagrad, and keeps the initial values of the model.
Optimizer choose_optimizer(const Settings& settings, std::string_view fallback, double rate);

}  // namespace capstan::train

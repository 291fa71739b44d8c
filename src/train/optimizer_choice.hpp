// optimizer_choice.hpp -- the Optimizer that --optimizer, --learning-rate, --momentum and --nesterov select.
#pragma once

#include <string_view>

#include "capstan/optimizers.hpp"

namespace capstan {
class Settings;
}

namespace capstan::train {

/// Sets --optimizer to `optimizer`, and --learning-rate to the default of the selected optimizer, unless they
/// are set. `adagrad_rate` is the default of Adagrad and FTRL.
void set_optimizer_defaults(Settings& settings, std::string_view optimizer, double adagrad_rate);

/// Returns the selected optimizer. The initial accumulator of Adagrad and FTRL is 0, since the scale of the
/// gradients is not known in advance; FTRL then equals Adagrad, and keeps the initial values of the model.
/// REQUIRES: set_optimizer_defaults was called.
Optimizer selected_optimizer(const Settings& settings);

}  // namespace capstan::train

// optimizer_choice.hpp -- --optimizer, --learning-rate, --momentum and --nesterov as an Optimizer.
#pragma once

#include <string_view>

#include "capstan/optimizers.hpp"

namespace capstan {
class Settings;
}

namespace capstan::train {

/// `own` is the program's own optimizer, `rate` that for Adagrad and FTRL where none is given. These two
/// have no head start: the scale of gradients is not known beforehand. FTRL then is Adagrad, and starts from
/// the values that the model was initialized with.
Optimizer choose_optimizer(const Settings& settings, std::string_view own, double rate);

}  // namespace capstan::train

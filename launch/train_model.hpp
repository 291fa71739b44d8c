// train_model.hpp -- `capstan train lr`, `fm` and `mlp`, on every rank and in every role.
#pragma once

#include "base/settings.hpp"
#include "train/model_options.hpp"

namespace capstan {

/// Runs this rank's part and returns the program's exit code. Throws Error.
int run_train_model(train::Program program, const Settings& settings);

}  // namespace capstan

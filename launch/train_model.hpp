// train_model.hpp -- `capstan train lr`, `fm` and `mlp`; runs on every rank, in every role.
#pragma once

#include "base/settings.hpp"
#include "train/model_options.hpp"

namespace capstan {

/// Runs the role of this rank and returns the exit code. Throws Error.
int run_train_model(train::Program program, const Settings& settings);

}  // namespace capstan

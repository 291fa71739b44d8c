// train.hpp -- `capstan train PROGRAM`; runs on every rank, in every role.
#pragma once

#include <string>

#include "base/settings.hpp"

namespace capstan {

/// Runs the role of this rank and returns the exit code. Throws Error.
int run_train(const std::string& program, const Settings& settings);

}  // namespace capstan

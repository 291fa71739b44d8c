// train_kge.hpp -- `capstan train kge`: knowledge-graph embeddings; runs on every rank, in every role.
#pragma once

#include "base/settings.hpp"

namespace capstan {

/// Runs the role of this rank and returns the exit code. `argc` and `argv` are those of main. Throws Error.
int run_train_kge(const Settings& settings, int argc, char** argv);

}  // namespace capstan

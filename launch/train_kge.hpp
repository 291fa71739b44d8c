// train_kge.hpp -- `capstan train kge`: knowledge-graph embeddings, on every rank and in every role.
#pragma once

#include "base/settings.hpp"

namespace capstan {

/// Runs this rank's part and returns the program's exit code. `argc` and `argv` are main's. Throws Error.
int run_train_kge(const Settings& settings, int argc, char** argv);

}  // namespace capstan

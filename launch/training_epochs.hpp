// training_epochs.hpp -- the number of epochs of a training, from its command line.
#pragma once

#include "launch/command_line.hpp"

namespace capstan::launch {

/// 0 if `line` is no `capstan train`, or one that may stop early. Throws Error(invalid_argument) for
/// incompatible settings.
int training_epochs(const CommandLine& line);

}  // namespace capstan::launch

// training_epochs.cpp -- derives the options of the training programs, which apply the defaults.
#include "launch/training_epochs.hpp"

#include "train/program.hpp"

namespace capstan::launch {

int training_epochs(const CommandLine& line) {
  if (line.action != Action::train) return 0;
  const train::RunOptions options = train::make_program(line.program, line.settings)->options();
  return options.patience > 0 ? 0 : options.epochs;
}

}  // namespace capstan::launch

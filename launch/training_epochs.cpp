// training_epochs.cpp -- derives the options of the training programs, which apply the defaults.
#include "launch/training_epochs.hpp"

#include "train/kge/program.hpp"
#include "train/model_options.hpp"

namespace capstan::launch {

int training_epochs(const CommandLine& line) {
  switch (line.action) {
    case Action::train_kge:
      return kge::ProgramOptions::from(line.settings).epochs;
    case Action::train_lr:
      return train::ModelOptions::from(train::Program::lr, line.settings).epochs;
    case Action::train_fm:
      return train::ModelOptions::from(train::Program::fm, line.settings).epochs;
    case Action::train_mlp:
      return train::ModelOptions::from(train::Program::mlp, line.settings).epochs;
    default:
      return 0;
  }
}

}  // namespace capstan::launch

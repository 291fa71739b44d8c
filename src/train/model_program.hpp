// model_program.hpp -- the programs that train a Model (model.hpp): epochs over shares of examples, and
// evaluation.
#pragma once

#include <memory>

#include "train/model_options.hpp"
#include "train/program.hpp"

namespace capstan::train {

/// Makes the program of a Model.
std::unique_ptr<TrainingProgram> make_model_program(const ModelOptions& options);

}  // namespace capstan::train

// programs.cpp -- the programs of `capstan train` by name.
#include <fmt/format.h>

#include "base/settings.hpp"
#include "capstan/error.hpp"
#include "train/kge/program.hpp"
#include "train/model_program.hpp"
#include "train/program.hpp"
#include "train/word2vec/program.hpp"

namespace capstan::train {

std::unique_ptr<TrainingProgram> make_program(std::string_view name, const Settings& settings) {
  if (name == "kge") return kge::make_kge_program(kge::ProgramOptions::from(settings));
  if (name == "word2vec") {
    return word2vec::make_word2vec_program(word2vec::ProgramOptions::from(settings));
  }
  for (const Program program :
       {Program::lr, Program::fm, Program::mf, Program::mlp, Program::deepfm, Program::dlrm, Program::dcn}) {
    if (name == to_string(program)) return make_model_program(ModelOptions::from(program, settings));
  }
  throw Error(Code::invalid_argument, fmt::format("`capstan train {}` is not a program", name));
}

}  // namespace capstan::train

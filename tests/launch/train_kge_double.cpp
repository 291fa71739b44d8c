// train_kge_double.cpp -- test doubles of run_train_kge(), run_train_model() and run_show_transports(), which
// print their settings. run_train_kge() throws if CAPSTAN_TESTS_THROW is set.
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

#include "capstan/error.hpp"
#include "launch/train_kge.hpp"
#include "launch/train_model.hpp"
#include "launch/training_epochs.hpp"
#include "launch/transports.hpp"

namespace capstan {

int run_train_kge(const Settings& settings, int argc, char** argv) {
  // CAPSTAN_TESTS_THROW is the number of a Code; -1 throws an exception other than Error.
  if (const char* code = std::getenv("CAPSTAN_TESTS_THROW")) {
    if (std::atoi(code) < 0) throw std::runtime_error("thrown by the test");
    throw Error(static_cast<Code>(std::atoi(code)), "thrown by the test");
  }
  std::cout << argc << " " << argv[0] << "\n" << settings.to_json() << "\n";
  return 0;
}

int run_train_model(train::Program program, const Settings& settings) {
  std::cout << static_cast<int>(program) << "\n" << settings.to_json() << "\n";
  return 0;
}

int run_show_transports(const Settings& settings) {
  std::cout << settings.to_json() << "\n";
  return 0;
}

int launch::training_epochs(const CommandLine&) { return 0; }

}  // namespace capstan

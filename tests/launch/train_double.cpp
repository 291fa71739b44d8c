// train_double.cpp -- test doubles of run_train() and run_show_transports(), which print their settings.
// run_train() throws if CAPSTAN_TESTS_THROW is set.
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

#include "capstan/error.hpp"
#include "launch/kge/run.hpp"
#include "launch/serve/run.hpp"
#include "launch/train.hpp"
#include "launch/training_epochs.hpp"
#include "launch/transports.hpp"

namespace capstan {

int run_train(const std::string& program, const Settings& settings) {
  // CAPSTAN_TESTS_THROW is the number of a Code; -1 throws an exception other than Error.
  if (const char* code = std::getenv("CAPSTAN_TESTS_THROW")) {
    if (std::atoi(code) < 0) throw std::runtime_error("thrown by the test");
    throw Error(static_cast<Code>(std::atoi(code)), "thrown by the test");
  }
  std::cout << program << "\n" << settings.to_json() << "\n";
  return 0;
}

int run_show_transports(const Settings& settings) {
  std::cout << settings.to_json() << "\n";
  return 0;
}

int launch::kge_model::run(const Request&) { return 0; }

int launch::serve::run(const Request&) { return 0; }

int launch::training_epochs(const CommandLine&) { return 0; }

}  // namespace capstan

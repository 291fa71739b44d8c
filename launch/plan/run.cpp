// run.cpp -- reads constants, and prints the plan.
#include "launch/plan/run.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <iterator>

#include "capstan/error.hpp"
#include "launch/plan/report.hpp"

namespace capstan::launch::plan {
namespace {

simulate::Constants constants_of(const std::string& path) {
  simulate::Constants constants;
  if (path.empty()) return constants;
  std::ifstream file(path);
  if (!file) throw Error(Code::not_found, fmt::format("--constants {}: there is no such file", path));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    (void)simulate::read_constants(constants, text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--constants {}: {}", path, error.what()));
  }
  return constants;
}

}  // namespace

int run(const Request& request) {
  const simulate::Constants constants = constants_of(request.constants);
  std::cout << report(request.plan, simulate::plan_job(request.plan, constants));
  std::cout.flush();
  if (!std::cout) throw Error(Code::resource_exhausted, "cannot write to standard output");
  return 0;
}

}  // namespace capstan::launch::plan

// run.cpp -- reads constants, and prints the plan.
#include "launch/plan/run.hpp"

#include <fmt/format.h>

#include <iostream>
#include <string_view>
#include <vector>

#include "capstan/error.hpp"
#include "launch/plan/report.hpp"

namespace capstan::launch::plan {
namespace {

/// Prints the constants that the file replaces.
simulate::Constants constants_of(const std::string& path) {
  simulate::Constants constants;
  if (path.empty()) return constants;
  try {
    const std::vector<std::string_view> replaced = simulate::read_constants_file(constants, path);
    std::cout << fmt::format("constants of {}: {}\n\n", path, fmt::join(replaced, ", "));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--constants: {}", error.what()));
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

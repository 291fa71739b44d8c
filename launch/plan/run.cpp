// run.cpp -- reads constants, and prints the plan.
#include "launch/plan/run.hpp"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "capstan/error.hpp"
#include "launch/plan/report.hpp"

namespace capstan::launch::plan {
namespace {

/// Returns the names of the constants that the file replaces.
std::vector<std::string_view> replace_constants(simulate::Constants& constants, const std::string& path) {
  if (path.empty()) return {};
  try {
    return simulate::read_constants_file(constants, path);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--constants: {}", error.what()));
  }
}

}  // namespace

int run(const Request& request) {
  simulate::Constants constants;
  const std::vector<std::string_view> replaced = replace_constants(constants, request.constants);
  const simulate::Plan plan = simulate::plan_job(request.plan, constants);
  if (request.json) {
    nlohmann::json json = report_json(request.plan, plan);
    json["replaced_constants"] = replaced;
    std::cout << json.dump(2) << '\n';
  } else {
    if (!replaced.empty())
      std::cout << fmt::format("constants of {}: {}\n\n", request.constants, fmt::join(replaced, ", "));
    std::cout << report(request.plan, plan);
  }
  std::cout.flush();
  if (!std::cout) throw Error(Code::resource_exhausted, "cannot write to standard output");
  return 0;
}

}  // namespace capstan::launch::plan

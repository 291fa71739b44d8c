// paced_file.cpp -- names of the results of paced steps.
#include "perf/simulate/paced_file.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "capstan/error.hpp"
#include "perf/bench/statistics.hpp"

namespace capstan::perf {
namespace {

constexpr double kSecondsPerUs = 1e-6;

/// Reads the numbers of "paced steps compute=5000us batch=64 ps=1 workers=32".
bool parse_case(const std::string& name, const std::string& part, int& compute_us, int& batch, int& ps,
                int& workers) {
  const std::string prefix = "paced steps" + part;
  if (name.rfind(prefix + " compute=", 0) != 0) return false;
  return std::sscanf(name.c_str() + prefix.size(), " compute=%dus batch=%d ps=%d workers=%d", &compute_us,
                     &batch, &ps, &workers) == 4;
}

/// Returns a number of a result. Throws Error(invalid_argument) that names the file if there is none.
double number_of(const nlohmann::json& result, const char* field, const std::string& path) {
  const auto found = result.find(field);
  if (found != result.end() && found->is_number()) return found->get<double>();
  throw Error(Code::invalid_argument, fmt::format("{}: {} of \"{}\": expected a number, found {}", path,
                                                  field, result.value("case", std::string()),
                                                  found == result.end() ? "none" : found->dump()));
}

std::size_t cores_of(const nlohmann::json& context, const std::string& path) {
  const auto cores = context.find("cores");
  if (cores != context.end() && cores->is_number_unsigned() && *cores > 0) return cores->get<std::size_t>();
  throw Error(Code::invalid_argument,
              fmt::format("{}: cores of the context: expected a number of at least 1, found {}", path,
                          cores == context.end() ? "none" : cores->dump()));
}

}  // namespace

void read_paced_runs(const std::string& path, std::vector<simulate::PacedRun>& runs) {
  std::ifstream file(path);
  if (!file) throw Error(Code::not_found, fmt::format("cannot read {}", path));
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("results") || !json["results"].is_array() ||
      !json.contains("context") || !json["context"].is_object()) {
    throw Error(Code::invalid_argument, fmt::format("{}: expected a report of perf_scale", path));
  }
  simulate::PacedRun run;
  bool found = false;
  bool has_push = false;
  bool has_duration = false;
  for (const auto& result : json["results"]) {
    if (!result.is_object() || !result.contains("case") || !result["case"].is_string()) {
      throw Error(Code::invalid_argument,
                  fmt::format("{}: expected results with a case, found {}", path, result.dump()));
    }
    const auto name = result["case"].get<std::string>();
    int compute_us = 0, batch = 0, ps = 0, workers = 0;
    const auto is = [&](const char* part) { return parse_case(name, part, compute_us, batch, ps, workers); };
    if (is("")) {
      run.job = simulate::paced_job(workers, ps, cores_of(json["context"], path), batch,
                                    compute_us * kSecondsPerUs);
      run.rate = number_of(result, "median", path);
      found = true;
    } else if (is(", push and flush")) {
      run.push_median = number_of(result, "median", path) * kSecondsPerUs;
      run.push_p99 = number_of(result, "p99", path) * kSecondsPerUs;
      has_push = true;
    } else if (is(", duration")) {
      run.step_p99 = number_of(result, "p99", path) * kSecondsPerUs;
      has_duration = true;
    }
  }
  if (!found) throw Error(Code::invalid_argument, fmt::format("{}: it has no paced steps", path));
  if (!has_push || !has_duration) {
    throw Error(Code::invalid_argument,
                fmt::format("{}: expected push and flush, and duration of its paced steps, found no {}", path,
                            has_push ? "duration" : "push and flush"));
  }
  runs.push_back(run);
}

std::vector<simulate::PacedRun> median_of_equal_jobs(std::vector<simulate::PacedRun> runs) {
  std::map<std::tuple<double, int, int, double>, std::vector<simulate::PacedRun>> jobs;
  for (const simulate::PacedRun& run : runs) {
    jobs[{run.job.compute, run.job.workers, run.job.ps, run.job.batch}].push_back(run);
  }
  std::vector<simulate::PacedRun> medians;
  for (const auto& [key, equal] : jobs) {
    simulate::PacedRun combined = equal.front();
    for (const auto value : {&simulate::PacedRun::rate, &simulate::PacedRun::push_median,
                             &simulate::PacedRun::push_p99, &simulate::PacedRun::step_p99}) {
      std::vector<double> values;
      for (const simulate::PacedRun& run : equal) values.push_back(run.*value);
      combined.*value = median(values);
    }
    medians.push_back(combined);
  }
  return medians;
}

}  // namespace capstan::perf

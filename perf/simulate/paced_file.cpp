// paced_file.cpp -- names of the results of paced steps.
#include "perf/simulate/paced_file.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
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

}  // namespace

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(Code::not_found, fmt::format("cannot read {}", path));
  return {std::istreambuf_iterator<char>(file), {}};
}

void read_paced_runs(const std::string& path, std::vector<simulate::PacedRun>& runs) {
  const auto json = nlohmann::json::parse(read_text(path), nullptr, false);
  if (!json.is_object() || !json.contains("results") || !json.contains("context")) {
    throw Error(Code::invalid_argument, fmt::format("{}: expected a report of perf_scale", path));
  }
  simulate::PacedRun run;
  bool found = false;
  for (const auto& result : json["results"]) {
    const auto name = result.value("case", std::string());
    int compute_us = 0, batch = 0, ps = 0, workers = 0;
    const auto is = [&](const char* part) { return parse_case(name, part, compute_us, batch, ps, workers); };
    if (is("")) {
      run.job = simulate::paced_job(workers, ps, json["context"].value("cores", std::size_t{1}), batch,
                                    compute_us * kSecondsPerUs);
      run.rate = result["median"];
      found = true;
    } else if (is(", push and flush")) {
      run.push_median = result["median"].get<double>() * kSecondsPerUs;
      run.push_p99 = result["p99"].get<double>() * kSecondsPerUs;
    } else if (is(", duration")) {
      run.step_p99 = result["p99"].get<double>() * kSecondsPerUs;
    }
  }
  if (!found) throw Error(Code::invalid_argument, fmt::format("{}: it has no paced steps", path));
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

// perf_simulate.cpp -- compares the simulation of paced steps with runs of perf_scale.
//
// Fits the constants that no benchmark measures alone to the runs of few ranks, and predicts the others. It
// measures nothing itself.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "capstan/error.hpp"
#include "perf/simulate/paced_file.hpp"
#include "simulate/calibrate.hpp"
#include "simulate/job_simulation.hpp"

namespace {

using namespace capstan;

/// Seeds of a prediction; it is their median.
constexpr std::uint64_t kSeeds = 3;

double percent(double predicted, double measured) { return 100 * (predicted / measured - 1); }

simulate::Prediction predict(simulate::JobModel job, const simulate::Constants& constants) {
  std::vector<simulate::Prediction> all;
  for (job.seed = 1; job.seed <= kSeeds; ++job.seed) all.push_back(simulate_job(job, constants));
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.whole_rate < b.whole_rate; });
  return all[all.size() / 2];
}

int run(const std::vector<std::string>& files, int fit_ranks, const std::string& constants_file,
        const std::string& out) {
  std::vector<simulate::PacedRun> runs;
  for (const std::string& file : files) perf::read_paced_runs(file, runs);
  runs = perf::median_of_equal_jobs(std::move(runs));
  std::vector<simulate::PacedRun> small;
  for (const simulate::PacedRun& each : runs) {
    if (each.job.workers + each.job.ps + 1 <= fit_ranks) small.push_back(each);
  }
  simulate::Constants constants;
  if (!constants_file.empty()) (void)simulate::read_constants_file(constants, constants_file);
  if (!small.empty()) constants = simulate::calibrate(small, constants);
  for (const simulate::ConstantField& field : simulate::constant_table()) {
    fmt::print("{:15} {:.4g} {:5}  {}\n", field.name, constants.*field.value, field.unit, field.source);
  }
  if (!out.empty()) {
    std::ofstream file(out);
    const char* separator = "{";
    for (const simulate::ConstantField& field : simulate::constant_table()) {
      file << fmt::format("{}\n  \"{}\": {:.6g}", separator, field.name, constants.*field.value);
      separator = ",";
    }
    file << "\n}\n";
    if (!file.flush()) throw Error(Code::unavailable, fmt::format("cannot write {}", out));
  }
  fmt::print("\n{:>5} {:>8} {:4} | {:>24} | {:>24} | {:>24} | {:>24} | {:>6}\n", "ranks", "compute", "use",
             "steps/s", "step p99 (us)", "push+flush median (us)", "push+flush p99 (us)", "cores");
  for (const simulate::PacedRun& each : runs) {
    const simulate::Prediction p = predict(each.job, constants);
    const int ranks = each.job.workers + each.job.ps + 1;
    const auto cell = [](double measured, double predicted) {
      return fmt::format("{:8.0f} {:8.0f} {:+5.0f}%", measured, predicted, percent(predicted, measured));
    };
    fmt::print("{:5} {:8.0f} {:4} | {:>24} | {:>24} | {:>24} | {:>24} | {:5.0f}%\n", ranks,
               1e6 * each.job.compute, ranks <= fit_ranks ? "fit" : "", cell(each.rate, p.whole_rate),
               cell(1e6 * each.step_p99, 1e6 * p.step_p99), cell(1e6 * each.push_median, 1e6 * p.push_median),
               cell(1e6 * each.push_p99, 1e6 * p.push_p99), 100 * p.processors);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compares the simulation of paced steps with runs of perf_scale: measured, predicted, error.");
  std::vector<std::string> files;
  app.add_option("FILES", files, "reports of `mpirun perf_scale --only paced --json FILE`")->required();
  int fit_ranks = 18;
  app.add_option("--fit-ranks", fit_ranks, "fit to runs of at most this many ranks; 0: fit nothing")
      ->check(CLI::NonNegativeNumber);
  std::string constants;
  app.add_option("--constants", constants,
                 "file of perf/run or of a benchmark, which replaces default constants");
  std::string out;
  app.add_option("--out", out, "write the fitted constants, for `capstan plan --constants`");
  try {
    app.parse(argc, argv);
    return run(files, fit_ranks, constants, out);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // 0 after --help
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}

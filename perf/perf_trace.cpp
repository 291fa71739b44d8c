// perf_trace.cpp -- what --trace costs functions that look up and push rows.
//
// Two clusters in this process, one with --trace and one without, run the same functions in turns. Bound: the
// functions without traces. Before anything is reported, the sums in both tables are compared with the number
// of functions, and the trace is searched for spans of lookups.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "capstan/capstan.hpp"
#include "perf/bench/ids.hpp"
#include "perf/bench/program.hpp"
#include "perf/bench/statistics.hpp"
#include "tests/io/temporary_directory.hpp"

namespace capstan::perf {
namespace {

constexpr std::int64_t kRows = 65536;
constexpr std::int64_t kWidth = 64;
constexpr std::size_t kIds = 1024;
constexpr int kFunctions = 256;  // per sample
constexpr std::int64_t kComputeMicroseconds[] = {0, 100};

/// Looks up rows, busy-waits, and pushes a gradient of ones to the same rows.
void step(const Variable<float>& table, std::uint64_t seed, std::int64_t compute_us) {
  static thread_local std::vector<std::int64_t> ids(kIds);
  static thread_local std::vector<float> rows(kIds * kWidth);
  static thread_local const std::vector<float> ones(kIds * kWidth, 1);
  Ids("uniform", kRows, 1, seed).draw(ids);
  table.lookup(ids, rows);
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(compute_us);
  while (std::chrono::steady_clock::now() < end) continue;
  table.push(ids, ones);
}

/// An embedded cluster with a run directory, with or without traces.
class Job {
 public:
  Job(std::filesystem::path directory, bool trace)
      : directory_(std::move(directory)),
        cluster_(Cluster::join({.run_dir = directory_.string(),
                                .metrics_every = std::chrono::milliseconds(0),
                                .trace = trace,
                                .log_level = "warn",
                                .bootstrap = "alone"})),
        strategy_(cluster_),
        table_(make_table(strategy_)),
        coordinator_(strategy_) {}

  void run_functions(std::int64_t compute_us) {
    for (int i = 0; i < kFunctions; ++i) {
      coordinator_.schedule<&step>(table_, static_cast<std::uint64_t>(functions_++), compute_us);
    }
    coordinator_.join();
  }
  /// Returns true if every element of every gradient was applied exactly once.
  bool sums_match() const {
    const auto values = table_.pull();
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    return sum == -static_cast<double>(functions_) * static_cast<double>(kIds * kWidth);
  }

 private:
  static Variable<float> make_table(ParameterServerStrategy& strategy) {
    const auto scope = strategy.scope();
    return {"table", Shape{kRows, kWidth}, initializers::zeros(), {optimizers::SGD{1.0}}};
  }

  std::filesystem::path directory_;
  Cluster cluster_;
  ParameterServerStrategy strategy_;
  Variable<float> table_;
  ClusterCoordinator coordinator_;
  std::int64_t functions_ = 0;
};

/// Returns true if a trace in `directory` has a span of a lookup.
bool has_spans(const std::filesystem::path& directory) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory / "trace", none)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line.find("\"lookup\"") != line.npos) return true;
    }
  }
  return false;
}

void measure_all(const Options& options, Report& report) {
  const io::TemporaryDirectory directory;
  const std::filesystem::path traced = directory.path() / "traced";
  const std::filesystem::path plain = directory.path() / "plain";
  std::filesystem::create_directories(traced);
  std::filesystem::create_directories(plain);
  std::vector<Result> results;
  bool verified = true;
  {
    Job with_trace(traced, true);
    Job without(plain, false);
    for (const std::int64_t compute_us : kComputeMicroseconds) {
      Timings timings;
      take_turns(
          options.warmup, options.iters * options.repeat, NoBarrier{}, true, [] {},
          [&] { with_trace.run_functions(compute_us); }, [&] { without.run_functions(compute_us); }, timings);
      Result result{fmt::format("traced functions compute={}", compute_us), "traced functions",
                    static_cast<std::uint64_t>(compute_us), "us of computation", "functions/s"};
      result = rate_result(std::move(result), kFunctions, timings.measured);
      result.bound = kFunctions / median(timings.bound);
      result.bound_name = "the same functions without traces";
      results.push_back(std::move(result));
    }
    verified = with_trace.sums_match() && without.sums_match();
  }
  // The end of the job has written the trace.
  verified = verified && has_spans(traced) && !has_spans(plain);
  for (Result& result : results) {
    result.verified = verified;
    report.add(std::move(result));
  }
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) {
  return capstan::perf::run_here(argc, argv,
                                 "Measures what --trace costs functions that look up and push 1,024 rows.",
                                 &capstan::perf::measure_all);
}

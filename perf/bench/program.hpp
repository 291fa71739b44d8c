// program.hpp -- frame of all benchmarks: flags, a cluster, the cases, the MPI rival, the report.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "capstan/capstan.hpp"
#include "perf/bench/bounds.hpp"
#include "perf/bench/options.hpp"
#include "perf/bench/report.hpp"
#include "perf/bench/tcp_bound.hpp"
#include "perf/bench/timing.hpp"

namespace capstan::perf {

class MpiRanks;

/// Context of a benchmark, on the coordinator, inside the scope of a strategy that partitions every variable
/// into one shard per ps.
struct Session {
  const Options& options;
  const Cluster& cluster;
  ParameterServerStrategy& strategy;
  ClusterCoordinator& coordinator;
  const Bounds& bounds;
  Report& report;
  const Counter& counter;  // for StartBarrier
  std::int64_t workers;
  bool tcp_bound = false;  // the bound is a raw TCP stream, and --bounds is a rival

  /// Runs fn(args..., Counter, workers) on every worker concurrently. fn must create a StartBarrier of the
  /// last two and wait on it; otherwise a fast worker could run the closure of a slow one.
  template <auto fn, class... Args>
  auto on_all_workers(const Args&... args) const {
    using Value = std::remove_cvref_t<decltype(coordinator.schedule<fn>(args..., counter, workers).fetch())>;
    std::vector<RemoteValue<Value>> started;
    for (std::int64_t i = 0; i < workers; ++i) {
      started.push_back(coordinator.schedule<fn>(args..., counter, workers));
    }
    std::vector<Value> values;
    for (const auto& value : started) values.push_back(value.fetch());
    coordinator.join();
    return values;
  }
};

/// Appends to `all`, for each sample, the maximum over the workers.
void append_slowest(Timings& all, const std::vector<Timings>& workers);

struct Benchmark {
  std::string question;  // one sentence that says what it measures: text of --help
  std::function<void(const Session&)> measure;
  /// Collective; runs on every rank after Capstan has shut down, only under mpirun. Null if there is none.
  std::function<void(const MpiRanks&, const Options&, Report&)> rival = {};
  std::function<void(CLI::App&)> more_flags = {};
  /// Returns the cases that a raw TCP stream bounds with --tcp-bound. Called on every rank. Null if there are
  /// none.
  std::function<std::vector<TcpCase>(const Cluster&, const Options&)> tcp_cases = {};
  /// At most one closure in flight per worker, so that on_all_workers() reaches every worker.
  bool one_closure_per_worker = true;
};

/// Implements main(). Under mpirun or srun it initializes MPI and forms the cluster of all ranks; started
/// alone, all roles are in this process. Returns the exit code: 1 if a result was wrong.
int run(int argc, char** argv, const Benchmark& benchmark);

/// Implements main() of a benchmark without a cluster: one process, one thread.
int run_here(int argc, char** argv, const std::string& question,
             const std::function<void(const Options&, Report&)>& measure);

}  // namespace capstan::perf

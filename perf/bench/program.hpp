// program.hpp -- what every benchmark does: flags, a cluster, its cases, the MPI rival, the report.
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
#include "perf/bench/timing.hpp"

namespace capstan::perf {

class MpiRanks;

/// What a benchmark's own part sees, on the coordinator, inside the scope of a strategy that cuts every
/// variable into one shard a ps.
struct Session {
  const Options& options;
  const Cluster& cluster;
  ParameterServerStrategy& strategy;
  ClusterCoordinator& coordinator;
  const Bounds& bounds;
  Report& report;
  const Counter& counter;  // for Together
  std::int64_t workers;

  /// fn(args..., Counter, workers) on every worker at once; fn makes a Together of the last two and must use
  /// it, or a fast worker might take the closure of a slow one.
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

/// Many workers' samples, each the slowest worker's, put behind those that `all` already has.
void append_slowest(Timings& all, const std::vector<Timings>& workers);

struct Benchmark {
  std::string question;  // what it measures, one sentence: the text of --help
  std::function<void(const Session&)> measure;
  /// On every rank once Capstan is done, only under mpirun; null when there is none. Collective.
  std::function<void(const MpiRanks&, const Options&, Report&)> rival = {};
  std::function<void(CLI::App&)> more_flags = {};
  /// Every closure goes to a worker of its own: the figures are of all workers at once.
  bool one_closure_a_worker = true;
};

/// The body of main. Under mpirun or srun MPI is started and the cluster made of all its ranks; alone, every
/// role is in this process. Returns the exit code: 1 when an answer was wrong.
int run(int argc, char** argv, const Benchmark& benchmark);

/// The same for a question that needs no cluster: one process, one thread.
int run_here(int argc, char** argv, const std::string& question,
             const std::function<void(const Options&, Report&)>& measure);

}  // namespace capstan::perf

// program.cpp -- main program of a benchmark.
#include "perf/bench/program.hpp"

#include <mpi.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/settings.hpp"
#include "capstan/mpi.hpp"
#include "cluster/bootstrap/join.hpp"
#include "cluster/bootstrap/mpi_bootstrap.hpp"
#include "perf/bench/context.hpp"
#include "perf/bench/mpi_ranks.hpp"
#include "perf/bench/statistics.hpp"

namespace capstan::perf {
namespace {

/// Reads the settings as Cluster::join does: CAPSTAN_* variables and --capstan-NAME=VALUE, which it removes
/// from the arguments.
Settings read_settings(std::vector<std::string>& arguments) {
  constexpr std::string_view kPrefix = "--capstan-";
  Settings settings;
  settings.load_environment(environ);
  std::erase_if(arguments, [&](const std::string& argument) {
    if (!argument.starts_with(kPrefix)) return false;
    const std::size_t equals = std::min(argument.find('='), argument.size());
    settings.set_from_flag(argument.substr(kPrefix.size(), equals - kPrefix.size()),
                           equals == argument.size() ? "true" : argument.substr(equals + 1));
    return true;
  });
  return settings;
}

std::string program_name(char** argv) { return std::filesystem::path(argv[0]).filename().string(); }

/// Throws Error(invalid_argument) if --tcp-bound was given to a program without such a bound.
void reject_tcp_bound(const Options& options, char** argv) {
  if (!options.tcp_bound.value_or(false)) return;
  throw Error(Code::invalid_argument,
              "--tcp-bound: found " + program_name(argv) + ", expected perf_dense, perf_lookup or perf_push");
}

/// Runs the benchmark without its rival, on the coordinator. Returns false after an error, which it prints.
bool coordinate(const Cluster& cluster, const Benchmark& benchmark, const Options& options,
                const Bounds& bounds, bool tcp_bound, Report& report) {
  try {
    ParameterServerStrategy strategy(cluster, {FixedShardsPartitioner{cluster.count(Role::ps)}});
    const auto scope = strategy.scope();
    ClusterCoordinator coordinator(strategy);
    const Counter counter("perf_together");
    benchmark.measure({options, cluster, strategy, coordinator, bounds, report, counter,
                       cluster.count(Role::worker), tcp_bound});
    return true;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return false;
  }
}

int write_report(const Report& report, nlohmann::json context, const Options& options) {
  add_core_distance(context);
  report.print(std::cout, context);
  std::cout.flush();
  const auto write = [](const std::string& path, const auto& print) {
    if (path.empty()) return true;
    std::ofstream file(path);
    print(file);
    file.close();
    if (!file) std::cerr << "cannot write " << path << std::endl;
    return static_cast<bool>(file);
  };
  const bool json = write(options.json, [&](auto& file) { file << report.to_json(context).dump(2) << '\n'; });
  const bool csv = write(options.csv, [&](auto& file) { report.print_csv(file); });
  if (!json || !csv) return 1;
  if (report.results().empty() && !options.only.empty())
    std::cerr << "--only " << options.only << ": no case has a name that contains this" << std::endl;
  if (!report.all_verified()) std::cerr << "a result was wrong; its case has no value" << std::endl;
  return report.all_verified() && !report.results().empty() ? 0 : 1;
}

int run_alone(const Settings& settings, const Benchmark& benchmark, const Options& options,
              const Bounds& bounds) {
  if (options.tcp_bound.value_or(false))
    throw Error(Code::invalid_argument,
                "--tcp-bound: found a single process, expected ranks of mpirun or srun");
  const Cluster cluster = cluster::join(settings);
  nlohmann::json context = context_of(options);
  add_cluster(context, cluster);
  Report report(options.only);
  if (!coordinate(cluster, benchmark, options, bounds, false, report)) return 1;
  return write_report(report, context, options);
}

/// The program initializes MPI itself, so that a rival can run on the same ranks afterwards.
int run_ranks(const Settings& settings, const Benchmark& benchmark, const Options& options,
              const Bounds& bounds) {
  nlohmann::json context = context_of(options);
  Report report(options.only);
  bool good = true;
  std::vector<TcpCase> tcp_cases;
  Role role = Role::worker;
  {
    const Cluster cluster = cluster::join(mpi::share(MPI_COMM_WORLD), settings);
    role = cluster.role();
    const bool tcp_bound = benchmark.tcp_cases && options.tcp_bound.value_or(only_tcp_connects(cluster));
    if (tcp_bound) tcp_cases = benchmark.tcp_cases(cluster, options);
    if (role == Role::coordinator) {
      add_cluster(context, cluster);
      good = coordinate(cluster, benchmark, options, bounds, tcp_bound, report);
    } else {
      good = Server(cluster).join() == 0;
    }
  }
  const MpiRanks ranks(role);
  if (!ranks.true_on_all(good)) return 1;
  if (!tcp_cases.empty()) set_tcp_bounds(ranks, options, tcp_cases, report);
  if (benchmark.rival && options.with_rival) benchmark.rival(ranks, options, report);
  int code = ranks.rank() == 0 ? write_report(report, context, options) : 0;
  MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return code;
}

}  // namespace

void append_slowest(Timings& all, const std::vector<Timings>& workers) {
  std::vector<std::vector<double>> measured;
  std::vector<std::vector<double>> bounds;
  for (const Timings& worker : workers) {
    measured.push_back(worker.measured);
    bounds.push_back(worker.bound);
    all.verified = all.verified && worker.verified;
    all.bound_name = worker.bound_name;
  }
  const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(all.measured, slowest(measured));
  append(all.bound, slowest(bounds));
}

int run(int argc, char** argv, const Benchmark& benchmark) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  CLI::App app(benchmark.question, program_name(argv));
  Options options;
  add_options(app, options);
  if (benchmark.more_flags) benchmark.more_flags(app);
  const bool alone = cluster::launched_ranks().value_or(1) == 1;
  int code = 1;
  try {
    Settings settings = read_settings(arguments);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 expects them in reverse order
    app.parse(arguments);
    if (!benchmark.tcp_cases) reject_tcp_bound(options, argv);
    const Bounds bounds = Bounds::from(options.bounds);
    if (benchmark.one_closure_per_worker) settings.set_from_flag("max-inflight-per-worker", "1");
    if (alone) return run_alone(settings, benchmark, options, bounds);
    MPI_Init(&argc, &argv);
    code = run_ranks(settings, benchmark, options, bounds);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // 0 after --help
  } catch (const Error& error) {
    std::cerr << error.what() << std::endl;
    int started = 0;
    MPI_Initialized(&started);
    if (started != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
  }
  MPI_Finalize();
  return code;
}

int run_here(int argc, char** argv, const std::string& question,
             const std::function<void(const Options&, Report&)>& measure) {
  CLI::App app(question, program_name(argv));
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
    reject_tcp_bound(options, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const Error& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
  const nlohmann::json context = context_of(options);
  Report report(options.only);
  measure(options, report);
  return write_report(report, context, options);
}

}  // namespace capstan::perf

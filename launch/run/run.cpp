// run.cpp -- look around, plan, start, report.
#include "launch/run/run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "capstan/error.hpp"
#include "cluster/bootstrap/mpi_bootstrap.hpp"
#include "launch/exit_codes.hpp"
#include "launch/run/hosts.hpp"
#include "launch/run/place.hpp"
#include "launch/run/plan.hpp"
#include "launch/run/supervise.hpp"

namespace capstan::launch::run {
namespace {

void refuse_to_be_a_rank() {
  // srun without --mpi=pmix says nothing of ranks, but starts as many of us.
  const char* tasks = std::getenv("SLURM_PROCID") != nullptr ? std::getenv("SLURM_STEP_NUM_TASKS") : nullptr;
  const int ranks = cluster::launched_ranks().value_or(tasks != nullptr ? std::atoi(tasks) : 1);
  if (ranks <= 1) return;
  throw Error(
      Code::failed_precondition,
      fmt::format("this is one of {} ranks already, and capstan run starts ranks itself: call it once, "
                  "without mpirun or srun before it",
                  ranks));
}

std::string how_it_ended(int code) {
  if (code > 128 && code < 160) {
    return fmt::format("exit code {}: signal {} ({})", code, code - 128, strsignal(code - 128));
  }
  const std::string_view what = meaning(code);
  return what.empty() ? fmt::format("exit code {}", code) : fmt::format("exit code {}: {}", code, what);
}

}  // namespace

int run(const Request& request) {
  refuse_to_be_a_rank();
  const std::vector<Host> hosts = request.hosts.empty() ? std::vector<Host>() : read_hosts(request.hosts);
  const Plan plan = make_plan(request, look_around(request.mpirun, environment_of(environ)), hosts);
  if (request.dry_run) {
    fmt::print("{}\n", plan.text());
    if (std::fflush(stdout) != 0) throw Error(Code::resource_exhausted, "standard output: cannot be written");
    return 0;
  }
  fmt::print(stderr, "capstan run: {}\n", plan.text());
  const Outcome outcome = supervise(plan, {.timeout = request.timeout});
  if (outcome.left > 0) {
    fmt::print(stderr, "capstan run: the launcher left {} process{} on this host, which had to be killed\n",
               outcome.left, outcome.left == 1 ? "" : "es");
  }
  fmt::print(stderr, "capstan run: the job ended after {:.1f} s with {}\n",
             std::chrono::duration<double>(outcome.took).count(), how_it_ended(outcome.exit_code));
  return outcome.exit_code;
}

}  // namespace capstan::launch::run

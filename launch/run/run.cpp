// run.cpp -- detects the launch context, plans, supervises and reports.
#include "launch/run/run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "capstan/error.hpp"
#include "cluster/bootstrap/mpi_bootstrap.hpp"
#include "launch/exit_codes.hpp"
#include "launch/run/hosts.hpp"
#include "launch/run/launch_context.hpp"
#include "launch/run/plan.hpp"
#include "launch/run/program_path.hpp"
#include "launch/run/supervise.hpp"

namespace capstan::launch::run {
namespace {

void require_not_a_rank() {
  // srun without --mpi=pmix sets no PMI variables but still starts one copy per task.
  const char* tasks = std::getenv("SLURM_PROCID") != nullptr ? std::getenv("SLURM_STEP_NUM_TASKS") : nullptr;
  const int ranks = cluster::launched_ranks().value_or(tasks != nullptr ? std::atoi(tasks) : 1);
  if (ranks <= 1) return;
  throw Error(
      Code::failed_precondition,
      fmt::format(
          "capstan run: started as one of {} ranks, expected a single process; call it without mpirun "
          "or srun",
          ranks));
}

std::string exit_text(int code) {
  if (code > 128 && code < 160) {
    return fmt::format("exit code {}: signal {} ({})", code, code - 128, strsignal(code - 128));
  }
  const std::string_view what = describe_exit_code(code);
  return what.empty() ? fmt::format("exit code {}", code) : fmt::format("exit code {}: {}", code, what);
}

/// Returns 0 if the program can be started. Otherwise, reports the reason and returns a shell's exit code.
int check_program(const std::string& program) {
  const int error = program_error(program, std::getenv("PATH"));
  if (error == 0) return 0;
  fmt::print(stderr, "capstan: cannot start {}: {}\n", program, std::strerror(error));
  return static_cast<int>(error == EACCES ? Exit::not_executable : Exit::no_program);
}

}  // namespace

int run(const Request& request) {
  require_not_a_rank();
  const std::vector<Host> hosts = request.hosts.empty() ? std::vector<Host>() : read_hosts(request.hosts);
  const LaunchContext context = detect_launch_context(request.mpirun, environment_of(environ));
  const Plan plan = make_plan(request, context, hosts);
  if (request.dry_run) {
    fmt::print("{}\n", plan.text());
    if (std::fflush(stdout) != 0) throw Error(Code::resource_exhausted, "cannot write to standard output");
    return 0;
  }
  // Other hosts may have programs that this one lacks.
  if (hosts.empty() && !context.allocation) {
    if (const int code = check_program(request.program.front()); code != 0) return code;
  }
  fmt::print(stderr, "capstan run: {}\n", plan.text());
  const Outcome outcome = supervise(plan, {.timeout = request.timeout,
                                           .save_signal = request.save_signal,
                                           .requeues = context.allocation.has_value()});
  if (outcome.killed_orphans > 0) {
    fmt::print(stderr, "capstan run: killed {} process{} that the launcher left on this host\n",
               outcome.killed_orphans, outcome.killed_orphans == 1 ? "" : "es");
  }
  fmt::print(stderr, "capstan run: the job ended after {:.1f} s with {}\n",
             std::chrono::duration<double>(outcome.took).count(), exit_text(outcome.exit_code));
  return outcome.exit_code;
}

}  // namespace capstan::launch::run

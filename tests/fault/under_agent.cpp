// under_agent.cpp -- a program that capstan-agent supervises, and that has threads like a Python interpreter.
//
//   mpirun -np 4 under_agent FILE CODE --capstan-ps=1
//
// Adds 1 to a variable by closures until FILE exists, checks the sum, and exits with CODE. Prints "begins" to
// standard error when every worker has reached the ps, and the number of closures that counted at the end.
#include <capstan/capstan.hpp>
#include <capstan/detail/supervised_program.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "support/compute.hpp"
#include "until.hpp"

namespace {

namespace cs = capstan;

constexpr int kRound = 20;  // closures that are scheduled together
const std::vector<std::int64_t> kPlace{0};

/// Returns true, since the results of all workers are collected.
bool add(cs::Variable<std::int64_t> sum, std::int64_t number) {
  cs::compute_for(std::chrono::milliseconds(2));
  sum.scatter_add(kPlace, {number});
  return true;
}

/// Starts threads before Cluster::join; a fork would lose them.
void start_threads() {
  for (int i = 0; i < 2; ++i) {
    std::thread([] {
      while (true) std::this_thread::sleep_for(std::chrono::seconds(1));  // until the process ends
    }).detach();
  }
}

int fail(const char* what) {
  std::printf("WRONG: %s\n", what);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const cs::ClusterOptions options{.max_restarts = 50};
  const std::vector<std::string> command(argv, argv + argc);
  start_threads();
  if (cs::detail::needs_agent(options, command)) cs::detail::exec_under_agent(options, command);
  const cs::Cluster cluster = cs::Cluster::join(argc, argv, options);
  if (!cluster.embedded() && !cs::detail::is_supervised()) return fail("no agent");
  if (std::getenv(cs::detail::kAgentLinkVariable) != nullptr) return fail("the link is in the environment");
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();

  const Until end(argv[1]);
  cs::ParameterServerStrategy strategy(cluster);
  const auto scope = strategy.scope();
  const cs::Variable<std::int64_t> sum("sum", cs::Shape{1});
  cs::ClusterCoordinator coordinator(strategy);
  coordinator.run_on_every_worker<&add>(sum, std::int64_t{0});
  std::fprintf(stderr, "begins\n");
  std::int64_t scheduled = 0;
  while (!end.reached(scheduled)) {
    for (int i = 0; i < kRound; ++i) coordinator.schedule<&add>(sum, std::int64_t{1});
    scheduled += kRound;
    coordinator.join();
  }
  if (scheduled == 0 || sum.pull()[0] != scheduled) return fail("the sum");
  std::printf("counted %lld\n", static_cast<long long>(scheduled));
  return std::atoi(argv[2]);
}

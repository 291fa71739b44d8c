// group_until_death.cpp -- workers that train synchronously; one of them kills itself during a step.
//
//   mpirun -np 5 group_until_death STEPS FATAL_STEP --capstan-ps=1
//
// Every worker pushes a gradient of 1 in each step; gradients are summed. In FATAL_STEP, worker 1 dies
// between its push and the end of the step. Prints "begins" to standard error once each worker has ended a
// step. Prints the variable, and the number of steps of each function.
#include <capstan/capstan.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

namespace cs = capstan;

std::int64_t keep_step(cs::UpdateGroup group, cs::Variable<double> w, cs::Counter begun, std::int64_t steps,
                       std::int64_t fatal) {
  std::int64_t ended = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    w.push(cs::IndexedSlices<double>{{0}, {1}});
    if (cs::current_worker_index() == 1 && step == fatal) {
      w.flush();  // the ps has received the push
      std::raise(SIGKILL);
    }
    ended = group.end_step();
    if (step == 0) begun.fetch_add(1);
  }
  group.leave();
  return ended;
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const std::int64_t steps = std::atoll(argv[1]);
  const std::int64_t fatal = std::atoll(argv[2]);
  cs::ParameterServerStrategy strategy(cluster);
  const auto scope = strategy.scope();
  const cs::UpdateGroup group("all", cs::Synchronous{.average = false});
  const cs::Variable<double> w("w", cs::Shape{4}, {},
                               {.optimizer = cs::optimizers::SGD{.learning_rate = -1}, .group = group});
  const cs::Counter begun("begun");
  cs::ClusterCoordinator coordinator(strategy);
  std::vector<cs::RemoteValue<std::int64_t>> ended;
  const int workers = coordinator.workers();
  for (int worker = 0; worker < workers; ++worker) {
    ended.push_back(coordinator.schedule<&keep_step>(group, w, begun, steps, fatal));
  }
  while (begun.value() < workers && !coordinator.join(std::chrono::milliseconds(1))) {
  }
  std::fprintf(stderr, "begins\n");
  coordinator.join();
  std::printf("w %.0f\n", w.pull()[0]);
  for (const auto& count : ended) std::printf("ended %lld\n", static_cast<long long>(count.fetch()));
  return 0;
}

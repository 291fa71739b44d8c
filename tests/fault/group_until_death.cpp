// group_until_death.cpp -- workers that train synchronously; one of them kills itself during a step.
//
//   mpirun -np 5 group_until_death STEPS FATAL_STEP --capstan-ps=1
//
// Every worker pushes a gradient of 1 in each step; gradients are summed. In FATAL_STEP, worker 1 dies
// between its push and the end of the step. Prints "begins" to standard error once every worker has ended
// its first step. At the end, prints the first element of the variable and, for each closure, "ended" and
// the number of steps that its worker has ended.
#include <capstan/capstan.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

namespace cs = capstan;

std::int64_t train_in_group(cs::UpdateGroup group, cs::Variable<double> w, cs::Counter first_steps_ended,
                            std::int64_t steps, std::int64_t fatal) {
  std::int64_t ended = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    w.push(cs::IndexedSlices<double>{{0}, {1}});
    if (cs::current_worker_index() == 1 && step == fatal) {
      w.flush();  // the ps has received the push
      std::raise(SIGKILL);
    }
    ended = group.end_step();
    if (step == 0) first_steps_ended.fetch_add(1);
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
  const cs::Counter first_steps_ended("first_steps_ended");
  cs::ClusterCoordinator coordinator(strategy);
  std::vector<cs::RemoteValue<std::int64_t>> ended;
  const int workers = coordinator.workers();
  for (int worker = 0; worker < workers; ++worker) {
    ended.push_back(coordinator.schedule<&train_in_group>(group, w, first_steps_ended, steps, fatal));
  }
  while (first_steps_ended.value() < workers && !coordinator.join(std::chrono::milliseconds(1))) {
  }
  std::fprintf(stderr, "begins\n");
  coordinator.join();
  std::printf("w %.0f\n", w.pull()[0]);
  for (const auto& count : ended) std::printf("ended %lld\n", static_cast<long long>(count.fetch()));
  return 0;
}

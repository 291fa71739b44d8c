// save_on_signal.cpp -- saves a checkpoint on SIGUSR1 and continues.
//
//   mpirun -np 3 save_on_signal DIRECTORY
//
// Prints "ready" to standard error and "saved STEP" for each checkpoint; ends after the second.
#include <capstan/capstan.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>

#include "support/compute.hpp"

namespace cs = capstan;

namespace {

void add_one(cs::Variable<std::int64_t> w) {
  w.scatter_add(std::vector<std::int64_t>{0}, std::vector<std::int64_t>{1});
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  cs::ParameterServerStrategy strategy(cluster);
  const auto scope = strategy.scope();
  const cs::Variable<std::int64_t> w("w", cs::Shape{1});
  cs::ClusterCoordinator coordinator(strategy);
  cs::CheckpointManager checkpoints(strategy, {.directory = argv[1]});
  cs::SaveSchedule::request_on(SIGUSR1);
  std::fprintf(stderr, "ready\n");
  int saved = 0;
  for (std::int64_t step = 1; saved < 2 && step < 60'000; ++step) {
    coordinator.schedule<&add_one>(w);
    coordinator.join();
    if (checkpoints.due(step)) {
      const cs::SavedCheckpoint checkpoint(checkpoints.save(step));
      std::fprintf(stderr, "saved %lld\n",
                   static_cast<long long>(checkpoint.read<std::int64_t>("w").values[0]));
      if (checkpoint.read<std::int64_t>("w").values[0] != step) return 1;
      ++saved;
    }
    cs::compute_for(std::chrono::milliseconds(1));
  }
  return saved == 2 ? 0 : 1;
}

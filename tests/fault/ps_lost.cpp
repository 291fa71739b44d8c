// ps_lost.cpp -- closures that each count 1 on every ps, before and after a ps is lost with its host.
//
//   mpirun -np 6 ps_lost DIRECTORY CLOSURES MICROSECONDS LOSSES|FILE [read] --capstan-ps=2
//       --capstan-spares=1
//
// Runs CLOSURES closures, saves a checkpoint (unless DIRECTORY is "-"), and runs as many closures again.
// Then, LOSSES times, prints "kill N" to standard error, waits until a ps is lost, and runs as many closures
// again, of MICROSECONDS each. With FILE, it does not wait for a loss: it runs closures until FILE exists,
// and prints "reached N" each time all workers have reached all ps. With `read`, it first reads a counter of
// the last ps after a loss.
//
// Prints the number of closures, the sums of rows, optimizer slots and counter of each ps, and the state of
// all ranks.
#include <algorithm>
#include <capstan/capstan.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "support/compute.hpp"
#include "support/poll.hpp"
#include "support/shard_memory.hpp"
#include "until.hpp"

namespace {

namespace cs = capstan;

constexpr std::int64_t kRows = 64;
constexpr std::int64_t kWidth = 16;
constexpr int kPs = 2;

void add_one(cs::Counter first, cs::Counter second, cs::Variable<double> sharded,
             cs::Variable<double> momentum, std::int64_t i, std::int64_t microseconds) {
  const std::vector<double> ones(kWidth, 1);
  const std::int64_t row = i % (kRows / kPs);
  sharded.push(cs::IndexedSlices<double>{{row}, ones});
  cs::compute_for(std::chrono::microseconds(microseconds));
  sharded.push(cs::IndexedSlices<double>{{row + kRows / kPs}, ones});
  momentum.push(cs::IndexedSlices<double>{{0, kPs - 1}, std::vector<double>(kPs, 1)});
  first.add(1);
  second.add(1);
}

/// Connects a worker to every ps, and adds nothing.
bool reach_all(cs::Variable<double> sharded) {
  sharded.push(cs::IndexedSlices<double>{{0, kRows - 1}, std::vector<double>(2 * kWidth)});
  return true;
}

bool a_ps_is_lost(const cs::ClusterCoordinator& coordinator) {
  const auto states = coordinator.task_states();
  return std::any_of(states.begin(), states.end(),
                     [](const cs::TaskState& state) { return state.role == cs::Role::ps && state.dead; });
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const std::string directory = argv[1];
  const std::int64_t closures = std::atoll(argv[2]);
  const std::int64_t microseconds = std::atoll(argv[3]);
  const Until losses(argv[4]);
  const bool read_first = argc > 5 && std::string(argv[5]) == "read";
  cs::ParameterServerStrategy strategy(
      cluster, {.variable_partitioner = cs::FixedShardsPartitioner{kPs}, .memory = cs::shard_memory()});
  const auto scope = strategy.scope();
  const cs::Counter first("first");
  const cs::Counter second("second");
  const cs::Variable<double> sharded("sharded", cs::Shape{kRows, kWidth}, cs::initializers::constant(1),
                                     {.optimizer = cs::optimizers::SGD{.learning_rate = -1}});
  const cs::Variable<double> momentum("momentum", cs::Shape{kPs, 1}, {},
                                      {.optimizer = cs::optimizers::Adagrad{.learning_rate = -1}});
  cs::ClusterCoordinator coordinator(strategy);
  std::int64_t scheduled = 0;
  const auto run = [&](std::int64_t time) {
    for (std::int64_t i = 0; i < closures; ++i, ++scheduled)
      coordinator.schedule<&add_one>(first, second, sharded, momentum, i, time);
  };
  try {
    run(0);
    coordinator.join();
    std::optional<cs::CheckpointManager> checkpoints;
    if (directory != "-") {
      checkpoints.emplace(strategy, cs::CheckpointOptions{.directory = directory});
      checkpoints->save(1);
    }
    run(0);
    coordinator.join();
    if (losses.is_file()) std::fprintf(stderr, "kill 0\n");
    for (int round = 0; !losses.reached(round); ++round) {
      if (losses.is_file()) {
        coordinator.run_on_every_worker<&reach_all>(sharded);
        std::fprintf(stderr, "reached %d\n", round);
      } else {
        std::fprintf(stderr, "kill %d\n", round);
        if (!cs::poll_until([&] { return a_ps_is_lost(coordinator); }, std::chrono::minutes(5)))
          throw cs::Error(cs::Code::deadline_exceeded, "no ps was lost");
      }
      if (read_first) std::printf("read %lld\n", static_cast<long long>(second.value()));
      run(microseconds);
      coordinator.join();
    }
    std::printf("scheduled %lld\n", static_cast<long long>(scheduled));
    const std::vector<double> rows = sharded.pull();
    const std::vector<double> updated = momentum.pull();
    const auto half = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / kPs);
    std::printf("ps0 %.0f %.6f %lld\n", std::accumulate(rows.begin(), half, 0.0) / kWidth - kRows / kPs,
                updated[0], static_cast<long long>(first.value()));
    std::printf("ps1 %.0f %.6f %lld\n", std::accumulate(half, rows.end(), 0.0) / kWidth - kRows / kPs,
                updated[1], static_cast<long long>(second.value()));
    for (const cs::TaskState& state : coordinator.task_states())
      std::printf("%s%s\n", state.name.c_str(), state.dead ? " is lost" : "");
    std::printf("%s", strategy.describe_loads().c_str());
    if (checkpoints) checkpoints->save(2);  // by all current ps
  } catch (const cs::Error& error) {
    std::fprintf(stderr, "%s: %s\n", std::string(cs::to_string(error.code())).c_str(), error.what());
    return 4;
  }
  return 0;
}

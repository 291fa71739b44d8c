// rounds_until_death.cpp -- rounds of closures that each count 1 three times on every ps, with checkpoints,
// while ranks are killed and a ps is lost with its host.
//
//   mpirun -np 7 rounds_until_death DIRECTORY ROUNDS CLOSURES MICROSECONDS EVERY --capstan-ps=2
//       --capstan-spares=1
//
// Runs ROUNDS of CLOSURES closures, of about MICROSECONDS each. Saves a checkpoint first and after EVERY
// rounds.
//
// Prints a line after each round and each checkpoint: "round" or "saved", the number of failovers so far, and
// the sums of rows, optimizer slot and counter of each ps. It reads the values again if a failover happened
// meanwhile.
#include <algorithm>
#include <capstan/capstan.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "support/compute.hpp"

namespace {

namespace cs = capstan;

constexpr std::int64_t kRows = 64;
constexpr std::int64_t kWidth = 16;
constexpr int kPs = 2;

/// The variables that closures add to. Each ps holds the same share of every one.
struct Model {
  cs::Counter first{"first"};
  cs::Counter second{"second"};
  cs::Variable<double> sharded{
      "sharded", cs::Shape{kRows, kWidth}, {}, {.optimizer = cs::optimizers::SGD{.learning_rate = -1}}};
  cs::Variable<double> slots{
      "slots", cs::Shape{kPs, 1}, {}, {.optimizer = cs::optimizers::Adagrad{.learning_rate = -1}}};
};

void add_one(cs::Counter first, cs::Counter second, cs::Variable<double> sharded, cs::Variable<double> slots,
             std::int64_t i, std::int64_t microseconds) {
  const std::vector<double> ones(kWidth, 1);
  const std::int64_t row = i % (kRows / kPs);
  sharded.push(cs::IndexedSlices<double>{{row}, ones});
  cs::compute_for(std::chrono::microseconds(microseconds));
  sharded.push(cs::IndexedSlices<double>{{row + kRows / kPs}, ones});
  slots.push(cs::IndexedSlices<double>{{0, kPs - 1}, std::vector<double>(kPs, 1)});
  first.add(1);
  second.add(1);
}

int failovers(const cs::ClusterCoordinator& coordinator) {
  const auto states = coordinator.task_states();
  return static_cast<int>(std::count_if(states.begin(), states.end(), [](const cs::TaskState& state) {
    return state.name.find(", now ps ") != std::string::npos;
  }));
}

void print(const char* what, const Model& model, const cs::ClusterCoordinator& coordinator) {
  int taken = -1;
  std::vector<double> rows;
  std::vector<double> slots;
  std::int64_t first = 0;
  std::int64_t second = 0;
  while (taken != failovers(coordinator)) {
    taken = failovers(coordinator);
    rows = model.sharded.pull();
    slots = model.slots.pull();
    first = model.first.value();
    second = model.second.value();
  }
  const auto half = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / kPs);
  std::printf("%s %d %.0f %.9f %lld %.0f %.9f %lld\n", what, taken,
              std::accumulate(rows.begin(), half, 0.0) / kWidth, slots[0], static_cast<long long>(first),
              std::accumulate(half, rows.end(), 0.0) / kWidth, slots[1], static_cast<long long>(second));
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const std::string directory = argv[1];
  const std::int64_t rounds = std::atoll(argv[2]);
  const std::int64_t closures = std::atoll(argv[3]);
  const std::int64_t microseconds = std::atoll(argv[4]);
  const std::int64_t every = std::atoll(argv[5]);
  cs::ParameterServerStrategy strategy(cluster, {.variable_partitioner = cs::FixedShardsPartitioner{kPs}});
  const auto scope = strategy.scope();
  const Model model;
  cs::ClusterCoordinator coordinator(strategy);
  cs::CheckpointManager checkpoints(strategy, cs::CheckpointOptions{.directory = directory});
  checkpoints.save(0);
  print("saved", model, coordinator);
  std::fprintf(stderr, "begins\n");
  for (std::int64_t round = 1; round <= rounds; ++round) {
    for (std::int64_t i = 0; i < closures; ++i) {
      coordinator.schedule<&add_one>(model.first, model.second, model.sharded, model.slots, i, microseconds);
    }
    coordinator.join();
    print("round", model, coordinator);
    if (round % every != 0) continue;
    checkpoints.save(round);
    print("saved", model, coordinator);
  }
  return 0;
}

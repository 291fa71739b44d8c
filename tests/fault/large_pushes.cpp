// large_pushes.cpp -- a closure that dies between two pushes of many entries each, and runs again on a worker
// with another path to the ps.
//
//   mpirun -np 4 large_pushes DIRECTORY --capstan-ps=1
//
// PATH_NAME in a worker's environment names its path. For each of "one" and "other", a closure kills the
// worker with that path. Prints the sum of the table, and the expected sum.
#include <capstan/capstan.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "support/compute.hpp"
#include "support/shard_memory.hpp"

namespace {

namespace cs = capstan;

constexpr std::int64_t kRows = 4000;
constexpr std::int64_t kWidth = 128;

/// Pushes ones for every other row, then for all rows, from GPU memory if the table is in GPU memory.
void push_some(const cs::Variable<float>& table) {
  std::vector<std::int64_t> ids(kRows / 2);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = 2 * static_cast<std::int64_t>(i);
  const std::vector<float> ones(kRows / 2 * kWidth, 1);
  if (cs::shard_memory() == cs::ShardMemory::host) {
    table.push(cs::IndexedSlices<float>{ids, ones});
    return;
  }
  cs::DeviceStream stream(0);
  table.push(stream, ids, cs::to_device(stream, ones).span());
}
void push_all(const cs::Variable<float>& table) {
  const std::vector<float> ones(kRows * kWidth, 1);
  if (cs::shard_memory() == cs::ShardMemory::host) return table.push_dense(ones);
  cs::DeviceStream stream(0);
  table.push_dense(stream, cs::to_device(stream, ones).span());
}

/// Returns false after a delay, without a push, on a worker that must not run the closure.
bool push_twice(cs::Variable<float> table, std::string directory, std::string dies) {
  const std::filesystem::path died = std::filesystem::path(directory) / dies;
  const bool dies_now = !std::filesystem::exists(died);
  const char* const path = std::getenv("PATH_NAME");
  if (dies_now && (path == nullptr || dies != path)) {
    cs::compute_for(std::chrono::milliseconds(20));
    return false;
  }
  push_some(table);
  if (dies_now) {
    table.flush();
    std::ofstream(died) << "died";
    (void)std::raise(SIGKILL);
  }
  push_all(table);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  cs::ParameterServerStrategy strategy(
      cluster, {.variable_partitioner = cs::FixedShardsPartitioner{2}, .memory = cs::shard_memory()});
  const auto scope = strategy.scope();
  const cs::Variable<float> table(
      "table", cs::Shape{kRows, kWidth}, {},
      {.optimizer = cs::optimizers::SGD{.learning_rate = -1}, .communication_dtype = cs::DType::bfloat16});
  cs::ClusterCoordinator coordinator(strategy);
  double expected = 0;
  for (const std::string dies : {"one", "other"}) {
    for (bool pushed = false; !pushed;) {
      // One closure for each worker.
      auto first = coordinator.schedule<&push_twice>(table, std::string(argv[1]), dies);
      auto second = coordinator.schedule<&push_twice>(table, std::string(argv[1]), dies);
      const int count = static_cast<int>(first.fetch()) + static_cast<int>(second.fetch());
      expected += 1.5 * kRows * kWidth * count;
      pushed = count > 0;
    }
  }
  coordinator.join();
  const std::vector<float> all = table.pull();
  std::printf("sum %.0f of %.0f\n", std::accumulate(all.begin(), all.end(), 0.0), expected);
  return 0;
}

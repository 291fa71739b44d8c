// sums_until_death.cpp -- closures that each count 1 in three places, while their workers are killed.
//
//   mpirun -np 7 sums_until_death CLOSURES [MICROSECONDS [endless]] --capstan-ps=2
//
// Each closure takes MICROSECONDS, of which most are between two of its pushes; without them, one in 16 takes
// 300. With `endless` a last one, whose result is not among the sums, has a deadline and no end.
//
// Prints what the three sums are at the end: a counter, a sharded table (one row of it, by turns), and a
// table on the last ps.
#include <capstan/capstan.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace cs = capstan;

constexpr std::int64_t kRows = 64;
constexpr std::int64_t kWidth = 16;

void add_one(cs::Counter counter, cs::Variable<double> sharded, cs::Variable<std::int64_t> other,
             std::int64_t i, std::int64_t microseconds) {
  const std::vector<double> ones(kWidth, 1);
  sharded.push(cs::IndexedSlices<double>{{i % kRows}, ones});
  // Long enough that most kills fall between two of the pushes, or on one.
  if (microseconds > 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  } else if (i % 16 == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  other.scatter_add(std::vector<std::int64_t>{0}, std::vector<std::int64_t>{1});
  counter.add(1);
}

void never_end() {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const std::int64_t closures = std::atoll(argv[1]);
  const std::int64_t microseconds = argc > 2 ? std::atoll(argv[2]) : 0;
  cs::ParameterServerStrategy strategy(cluster, {.variable_partitioner = cs::FixedShardsPartitioner{2}});
  const auto scope = strategy.scope();
  const cs::Counter counter("count");
  const cs::Variable<double> sharded("sharded", {kRows, kWidth}, {},
                                     {.optimizer = cs::optimizers::SGD{.learning_rate = -1}});
  const cs::Variable<std::int64_t> other("other", {1});
  cs::ClusterCoordinator coordinator(strategy);
  std::fprintf(stderr, "begins\n");
  for (std::int64_t i = 0; i < closures; ++i) {
    coordinator.schedule<&add_one>(counter, sharded, other, i, microseconds);
  }
  coordinator.join();
  const std::vector<double> table = sharded.pull();
  std::printf("counter %lld\n", static_cast<long long>(counter.value()));
  std::printf("sharded %.0f\n", std::accumulate(table.begin(), table.end(), 0.0) / kWidth);
  std::printf("other %lld\n", static_cast<long long>(other.pull()[0]));
  std::printf("workers %d\n", coordinator.workers());
  if (argc <= 3) return 0;
  const auto endless = coordinator.schedule_with<&never_end>({.deadline = std::chrono::milliseconds(50)});
  try {
    endless.fetch();
  } catch (const cs::Error& error) {
    std::printf("endless %s\n", std::string(cs::to_string(error.code())).c_str());
  }
  return 0;
}

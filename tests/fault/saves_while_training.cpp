// saves_while_training.cpp -- saves checkpoints while functions push.
//
//   mpirun -np 5 saves_while_training DIRECTORY SAVES shard|global wait|background|incremental
//       [MIB [STEP FILE]] --capstan-ps=2
//
// Each function adds 1 to every element of one row of a table of MIB MiB with a slot, waits, and adds 1 to an
// element of a second table. Some functions are queued when a save begins, and more run after the last one.
// Saves SAVES checkpoints, and more until functions have ended during a save. Before STEP, it prints "waits"
// to standard error and waits until FILE exists.
//
// Prints the number of functions, the largest number that ended during a save, the duration of the slowest
// save, and, for each checkpoint and for the end, the counts of rows of the first table and of elements
// of the second.
#include <algorithm>
#include <capstan/capstan.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "support/compute.hpp"

namespace {

namespace cs = capstan;

constexpr std::int64_t kWidth = 16;
// Functions push to a few rows in each sixth of the table, and therefore in each shard.
constexpr std::int64_t kParts = 6;
constexpr std::int64_t kRowsOfAPart = 1000;
constexpr std::uint64_t kQueued = 8000;  // functions queued when a save begins
constexpr std::uint64_t kBetween = 100;  // of these, functions that end before the save
constexpr std::int64_t kMaxSaves = 20;

void add_one(cs::Variable<float> table, cs::Variable<std::int64_t> other, std::int64_t i) {
  const std::int64_t row = i % kParts * (table.shape()[0] / kParts) + i / kParts % kRowsOfAPart;
  table.push(cs::IndexedSlices<float>{{row}, std::vector<float>(kWidth, 1)});
  cs::compute_for(std::chrono::microseconds(300));
  other.scatter_add(std::vector<std::int64_t>{i % 8}, std::vector<std::int64_t>{1});
}

/// Number of gradients of 1 that a row with this value has received: Adagrad without an initial accumulator
/// moves a value by 1 / sqrt(k) at the k-th gradient.
double counted(float value) {
  double sum = 0;
  int count = 0;
  for (; sum < value - 1e-3; ++count) sum += 1 / std::sqrt(count + 1.0);
  return count;
}

void print(const std::string& name, const std::vector<float>& table, const std::vector<std::int64_t>& other) {
  double rows = 0;
  bool complete = true;
  for (std::size_t row = 0; row < table.size(); row += kWidth) {
    rows += counted(table[row]);
    for (std::size_t i = 1; i < kWidth; ++i) complete = complete && table[row + i] == table[row];
  }
  std::printf("%s %.0f %lld %s\n", name.c_str(), rows,
              static_cast<long long>(std::accumulate(other.begin(), other.end(), std::int64_t{0})),
              complete ? "complete" : "torn");
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const std::filesystem::path directory = argv[1];
  const std::int64_t saves = std::atoll(argv[2]);
  const cs::SaveOptions options{.consistency = std::string_view(argv[3]) == "global"
                                                   ? cs::SaveConsistency::global
                                                   : cs::SaveConsistency::shard,
                                .incremental = std::string_view(argv[4]) == "incremental",
                                .background = std::string_view(argv[4]) == "background"};
  const std::int64_t rows = (argc > 5 ? std::atoll(argv[5]) : 1) * 1024 * 1024 / (8 * kWidth);
  const std::int64_t waits_before = argc > 7 ? std::atoll(argv[6]) : 0;
  cs::ParameterServerStrategy strategy(
      cluster, {.variable_partitioner = cs::FixedShardsPartitioner{cluster.count(cs::Role::ps)}});
  const auto scope = strategy.scope();
  const cs::Variable<float> table(
      "table", cs::Shape{rows, kWidth}, {},
      {.optimizer = cs::optimizers::Adagrad{.learning_rate = -1, .initial_accumulator = 0, .epsilon = 0}});
  const cs::Variable<std::int64_t> other("other", cs::Shape{8});
  cs::ClusterCoordinator coordinator(strategy);
  cs::CheckpointManager checkpoints(strategy, {.directory = directory, .max_to_keep = 0});
  std::int64_t functions = 0;
  const auto fill_the_queue = [&] {
    for (std::uint64_t queued = coordinator.statistics().queued; queued < kQueued; ++queued)
      coordinator.schedule<&add_one>(table, other, functions++);
  };
  const auto let_some_end = [&] {
    const std::uint64_t enough = coordinator.statistics().finished + kBetween;
    while (coordinator.statistics().finished < enough) coordinator.join(std::chrono::milliseconds(1));
  };
  std::vector<std::filesystem::path> saved;
  std::uint64_t most = 0;  // functions that ended during one save
  double slowest = 0;      // duration of a save, in seconds
  for (std::int64_t step = 1; step <= saves || (most == 0 && step <= kMaxSaves); ++step) {
    fill_the_queue();
    let_some_end();
    if (step == waits_before) {
      std::fprintf(stderr, "waits\n");
      while (!std::filesystem::exists(argv[7])) coordinator.join(std::chrono::milliseconds(1));
    }
    if (step == 1) std::fprintf(stderr, "saves begin\n");
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t before = coordinator.statistics().finished;
    saved.push_back(checkpoints.save(step, "null", options));
    checkpoints.wait();
    most = std::max(most, coordinator.statistics().finished - before);
    slowest =
        std::max(slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  fill_the_queue();
  coordinator.schedule<&add_one>(table, other, functions++);
  coordinator.join();
  std::printf("functions %lld\n", static_cast<long long>(functions));
  std::printf("went_on %llu\n", static_cast<unsigned long long>(most));
  std::printf("slowest %.3f\n", slowest);
  print("end", table.pull(), other.pull());
  for (const auto& path : saved) {
    const cs::SavedCheckpoint checkpoint(path);
    print("saved", checkpoint.read<float>("table").values, checkpoint.read<std::int64_t>("other").values);
  }
  return 0;
}

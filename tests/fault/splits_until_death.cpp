// splits_until_death.cpp -- a table with a counter for every example, which workers count up split by split
// while they are killed.
//
//   mpirun -np 6 splits_until_death EXAMPLES EPOCHS MICROSECONDS [FOLDER SECONDS] --capstan-ps=2
//
// An evaluator says of each checkpoint what the counts add up to and which splits are done.
//
// A split has 10 examples, and takes MICROSECONDS in the middle of what it pushes. With FOLDER, a checkpoint
// is saved there every so many SECONDS while splits run, and the newest one that is there is gone on from.
// Prints how many examples have which count at the end.
#include <capstan/capstan.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <thread>
#include <vector>

namespace {

namespace cs = capstan;
using Count = std::int64_t;

void count_each(const cs::DataSplit& split, const cs::Variable<Count>& counts, std::int64_t microseconds) {
  const std::int64_t middle = split.begin + split.size() / 2;
  for (const std::int64_t example : cs::examples_of(cs::Dataset<std::int64_t>::range(split.end), split)) {
    if (example == middle) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    counts.scatter_add(std::vector<std::int64_t>{example}, std::vector<Count>{1});
  }
}

void evaluate(const cs::SavedCheckpoint& checkpoint) {
  const auto counts = checkpoint.read<Count>("counts").values;
  std::printf("evaluated %lld: %lld %s\n", static_cast<long long>(checkpoint.step()),
              static_cast<long long>(std::accumulate(counts.begin(), counts.end(), Count{0})),
              checkpoint.position("splits").c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() == cs::Role::evaluator) {
    const std::chrono::milliseconds often(20);
    return cs::SidecarEvaluator(cluster, {.checkpoint_dir = argv[4], .poll_interval = often})
        .start(&evaluate);
  }
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const std::int64_t examples = std::atoll(argv[1]);
  const std::int64_t epochs = std::atoll(argv[2]);
  const std::int64_t microseconds = std::atoll(argv[3]);
  cs::ParameterServerStrategy strategy(cluster, {.variable_partitioner = cs::FixedShardsPartitioner{2}});
  const auto scope = strategy.scope();
  const cs::Variable<Count> counts("counts", {examples}, {});
  cs::ClusterCoordinator coordinator(strategy);
  auto data = coordinator.create_split_dataset(
      examples, {.examples_per_split = 10, .epochs = epochs, .shuffle_seed = 17});
  std::optional<cs::CheckpointManager> checkpoints;
  std::int64_t step = 0;
  if (argc > 5) {
    checkpoints.emplace(strategy, cs::CheckpointOptions{.directory = argv[4]});
    step = checkpoints->restore_latest().value_or(0);
  }
  std::int64_t before = 0;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) before += data.splits_done(epoch);
  std::printf("before %lld\n", static_cast<long long>(before));
  std::fprintf(stderr, "begins\n");
  while (!data.done()) {
    // Two epochs may run into each other: that is no reason to wait.
    while (!data.schedule_each<&count_each>(counts, microseconds).empty()) {
    }
    if (checkpoints) {
      const std::chrono::milliseconds pause(static_cast<std::int64_t>(1000 * std::atof(argv[5])));
      while (!coordinator.join(pause)) {
        checkpoints->save(++step);
        std::fprintf(stderr, "saved %lld\n", static_cast<long long>(step));
      }
    } else {
      coordinator.join();
    }
  }
  std::map<Count, std::int64_t> examples_with;
  for (const Count count : counts.pull()) ++examples_with[count];
  for (const auto& [count, how_many] : examples_with) {
    std::printf("count %lld: %lld\n", static_cast<long long>(count), static_cast<long long>(how_many));
  }
  return 0;
}

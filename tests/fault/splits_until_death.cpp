// splits_until_death.cpp -- a table with a counter for every example; workers increment the counters of each
// split while workers are killed.
//
//   mpirun -np 6 splits_until_death EXAMPLES EPOCHS MICROSECONDS FILE [DIRECTORY SECONDS] --capstan-ps=2
//
// An evaluator prints the sum of the counts and the completed splits of each checkpoint.
//
// A split has 10 examples and takes MICROSECONDS between its pushes. The last splits are handed out once FILE
// exists, so the job does not end before. Prints "begins" to standard error when every worker has reached
// every ps. With DIRECTORY, it restores the newest checkpoint, saves one every SECONDS, and prints "saved
// STEP, N done", N being the number of completed splits. Prints how many examples have each count at the end.
#include <capstan/capstan.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "support/compute.hpp"

namespace {

namespace cs = capstan;
using Count = std::int64_t;

constexpr std::int64_t kLastSplits = 30;

void count_each(const cs::DataSplit& split, const cs::Variable<Count>& counts, std::int64_t microseconds) {
  const std::int64_t middle = split.begin + split.size() / 2;
  for (const std::int64_t example : cs::examples_of(cs::Dataset<std::int64_t>::range(split.end), split)) {
    if (example == middle) cs::compute_for(std::chrono::microseconds(microseconds));
    counts.scatter_add(std::vector<std::int64_t>{example}, std::vector<Count>{1});
  }
}

/// Connects a worker to every ps, and adds nothing.
bool reach_all(const cs::Variable<Count>& counts) {
  counts.scatter_add(std::vector<std::int64_t>{0, counts.shape()[0] - 1}, std::vector<Count>{0, 0});
  return true;
}

void evaluate(const cs::SavedCheckpoint& checkpoint) {
  const auto counts = checkpoint.read<Count>("counts").values;
  std::printf("evaluated %lld: %lld %s\n", static_cast<long long>(checkpoint.step()),
              static_cast<long long>(std::accumulate(counts.begin(), counts.end(), Count{0})),
              checkpoint.position("splits").c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() == cs::Role::evaluator) {
    const std::chrono::milliseconds often(20);
    return cs::SidecarEvaluator(cluster, {.checkpoint_dir = argv[5], .poll_interval = often})
        .start(&evaluate);
  }
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const std::int64_t examples = std::atoll(argv[1]);
  const std::int64_t epochs = std::atoll(argv[2]);
  const std::int64_t microseconds = std::atoll(argv[3]);
  const std::string file = argv[4];
  cs::ParameterServerStrategy strategy(cluster, {.variable_partitioner = cs::FixedShardsPartitioner{2}});
  const auto scope = strategy.scope();
  const cs::Variable<Count> counts("counts", cs::Shape{examples}, {});
  cs::ClusterCoordinator coordinator(strategy);
  auto data = coordinator.create_split_dataset(
      examples, {.examples_per_split = 10, .epochs = epochs, .shuffle_seed = 17});
  std::optional<cs::CheckpointManager> checkpoints;
  std::int64_t step = 0;
  if (argc > 6) {
    checkpoints.emplace(strategy, cs::CheckpointOptions{.directory = argv[5]});
    step = checkpoints->restore_latest().value_or(0);
  }
  const auto splits_done = [&] {
    std::int64_t done = 0;
    for (std::int64_t epoch = 0; epoch < epochs; ++epoch) done += data.splits_done(epoch);
    return static_cast<long long>(done);
  };
  std::printf("before %lld\n", splits_done());
  coordinator.run_on_every_worker<&reach_all>(counts);
  std::fprintf(stderr, "begins\n");
  // Epochs may overlap: there is no need to wait between them.
  const auto hand_out = [&](std::int64_t splits) {
    while (splits > 0) {
      const auto handed_out = data.schedule_some<&count_each>(splits, counts, microseconds);
      if (handed_out.empty()) return;
      splits -= static_cast<std::int64_t>(handed_out.size());
    }
  };
  const std::int64_t all = epochs * data.splits_per_epoch();
  hand_out(all - kLastSplits - splits_done());
  const std::chrono::milliseconds pause(checkpoints ? static_cast<std::int64_t>(1000 * std::atof(argv[6]))
                                                    : 50);
  while (!data.done()) {
    if (std::filesystem::exists(file)) hand_out(all);
    if (coordinator.join(pause)) std::this_thread::sleep_for(pause);  // saves are `pause` apart
    if (!checkpoints || data.done()) continue;
    const long long done = splits_done();
    checkpoints->save(++step);
    std::fprintf(stderr, "saved %lld, %lld done\n", static_cast<long long>(step), done);
  }
  std::map<Count, std::int64_t> examples_with;
  for (const Count count : counts.pull()) ++examples_with[count];
  for (const auto& [count, how_many] : examples_with) {
    std::printf("count %lld: %lld\n", static_cast<long long>(count), static_cast<long long>(how_many));
  }
  return 0;
}

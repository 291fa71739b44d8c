// step6_failures.cpp -- step 6 of the tutorial: every example counts exactly once, whichever processes are
// killed.
#include <unistd.h>

#include <capstan/capstan.hpp>
#include <string>

#include "problem.hpp"

namespace cs = capstan;

// Runs on a worker for each split: a range of batches. If the worker dies, the split runs again elsewhere,
// and pushes that were applied already are not applied again.
void train_on(const cs::DataSplit& split, cs::Variable<double> w, cs::Variable<double> count) {
  for (std::int64_t number = split.begin; number < split.end; ++number) {
    const Batch batch = make_batch(number);
    w.push(batch.ids, gradient_of(batch, w.lookup(batch.ids).values));
    count.push_dense({-1});  // SGD with a learning rate of 1 adds 1
    w.flush();               // waits for both pushes: the next lookup must not be hundreds of steps behind
  }
}

int main(int argc, char** argv) try {
  cs::Cluster cluster = cs::Cluster::join(argc, argv);
  std::fprintf(stderr, "%s is process %d\n", cluster.name().c_str(), static_cast<int>(getpid()));
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  if (argc != 3) return std::fprintf(stderr, "usage: tutorial_step6 DIRECTORY EPOCHS\n"), 2;
  const int epochs = std::stoi(argv[2]);

  cs::ParameterServerStrategy strategy(cluster, cs::FixedShardsPartitioner{cluster.count(cs::Role::ps)});
  auto scope = strategy.scope();
  cs::Variable<double> w("w", cs::Shape{kFeatures}, cs::initializers::zeros(), {cs::optimizers::SGD{0.05}});
  cs::Variable<double> count("count", cs::Shape{1}, cs::initializers::zeros(), {cs::optimizers::SGD{1.0}});

  cs::ClusterCoordinator coordinator(strategy);
  auto data = coordinator.create_split_dataset(kBatches, {.examples_per_split = 50, .epochs = epochs});
  cs::CheckpointManager checkpoints(strategy, {.directory = argv[1], .max_to_keep = 2});
  checkpoints.restore_latest();  // variables, and the splits that are done
  while (!data.done()) {
    data.schedule_each<&train_on>(w, count);  // all splits of an epoch
    coordinator.join();
    checkpoints.save(data.epoch());
    std::printf("epoch %d\n", static_cast<int>(data.epoch()));
    std::fflush(stdout);
  }
  const auto batches = static_cast<std::int64_t>(count.pull()[0]);
  std::printf("%lld batches, expected %lld\n", static_cast<long long>(batches),
              static_cast<long long>(kBatches * epochs));
  return check(w.pull()) && batches == kBatches * epochs ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 2;
}

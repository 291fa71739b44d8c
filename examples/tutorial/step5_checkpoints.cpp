// step5_checkpoints.cpp -- step 5 of the tutorial: saves after each epoch, and resumes from the last
// checkpoint.
#include <capstan/capstan.hpp>
#include <string>

#include "problem.hpp"

namespace cs = capstan;

cs::Dataset<Batch> make_batches() {
  return cs::Dataset<std::int64_t>::range(kBatches)
      .shuffle(kBatches, {.seed = static_cast<std::uint64_t>(cs::current_worker_index())})
      .repeat()
      .map(&make_batch)
      .prefetch(4);
}

void train_step(cs::PerWorker<cs::Iterator<Batch>> batches, cs::Variable<double> w) {
  const Batch batch = batches->next();
  w.push(batch.ids, gradient_of(batch, w.lookup(batch.ids).values));
}

int main(int argc, char** argv) try {
  cs::Cluster cluster = cs::Cluster::join(argc, argv);  // removes its own arguments
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  if (argc != 3) return std::fprintf(stderr, "usage: tutorial_step5 DIRECTORY EPOCHS\n"), 2;

  cs::ParameterServerStrategy strategy(cluster, cs::FixedShardsPartitioner{cluster.count(cs::Role::ps)});
  auto scope = strategy.scope();
  cs::Variable<double> w("w", cs::Shape{kFeatures}, cs::initializers::zeros(), {cs::optimizers::SGD{0.05}});

  cs::ClusterCoordinator coordinator(strategy);
  auto batches = coordinator.create_per_worker_dataset<&make_batches>();
  cs::CheckpointManager checkpoints(strategy, {.directory = argv[1], .max_to_keep = 2});
  std::int64_t epoch = checkpoints.restore_latest().value_or(0);
  std::printf("%d epochs are done\n", static_cast<int>(epoch));
  while (epoch < std::stoi(argv[2])) {
    for (int step = 0; step < 400; ++step) coordinator.schedule<&train_step>(batches, w);
    coordinator.join();
    checkpoints.save(++epoch);
  }
  return check(w.pull()) ? 0 : 1;
} catch (const std::exception& error) {  // such as a directory that another job uses
  return std::fprintf(stderr, "%s\n", error.what()), 2;
}

// step4_datasets.cpp -- step 4 of the tutorial: each worker reads its own dataset.
#include <capstan/capstan.hpp>

#include "problem.hpp"

namespace cs = capstan;

// Runs once on each worker: every worker reads all batches, in an order of its own.
cs::Dataset<Batch> make_batches() {
  return cs::Dataset<std::int64_t>::range(kBatches)
      .shuffle(kBatches, {.seed = static_cast<std::uint64_t>(cs::current_worker_index())})
      .repeat()
      .map(&make_batch)
      .prefetch(4);  // made by a thread while the worker computes
}

double train_step(cs::PerWorker<cs::Iterator<Batch>> batches, cs::Variable<double> w) {
  const Batch batch = batches->next();
  const std::vector<double> gradient = gradient_of(batch, w.lookup(batch.ids).values);
  w.push(batch.ids, gradient);
  double loss = 0;  // each example's error occurs once for each of its features, so this is the mean loss
  for (const double error : gradient) loss += error * error / 2;
  return loss / static_cast<double>(gradient.size());
}

int main(int argc, char** argv) {
  cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();

  cs::ParameterServerStrategy strategy(cluster, cs::FixedShardsPartitioner{cluster.count(cs::Role::ps)});
  auto scope = strategy.scope();
  cs::Variable<double> w("w", cs::Shape{kFeatures}, cs::initializers::zeros(), {cs::optimizers::SGD{0.05}});

  cs::ClusterCoordinator coordinator(strategy);
  auto batches = coordinator.create_per_worker_dataset<&make_batches>();
  for (int epoch = 1; epoch <= 5; ++epoch) {
    std::vector<cs::RemoteValue<double>> losses;
    for (int step = 0; step < 400; ++step) losses.push_back(coordinator.schedule<&train_step>(batches, w));
    coordinator.join();
    std::printf("epoch %d: loss %.2e\n", epoch, losses.back().fetch());
  }
  return check(w.pull()) ? 0 : 1;
}

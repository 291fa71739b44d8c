// step2_closures.cpp -- step 2 of the tutorial: the same loop, whose body runs on any free worker.
#include <capstan/capstan.hpp>

#include "problem.hpp"

namespace cs = capstan;

// Runs on a worker. Arguments are copied; a variable is a handle.
void train_step(std::int64_t number, cs::Variable<double> w) {
  const Batch batch = make_batch(number);
  const cs::Buffer<double> all = w.pull();
  std::vector<double> weights, gradient(kFeatures);
  for (const std::int64_t id : batch.ids) weights.push_back(all[id]);
  const std::vector<double> parts = gradient_of(batch, weights);
  for (std::size_t i = 0; i < parts.size(); ++i) gradient[batch.ids[i]] += parts[i];
  w.push_dense(gradient);  // the ps applies the optimizer
}

int main(int argc, char** argv) {
  cs::Cluster cluster = cs::Cluster::join(argc, argv);  // under mpirun or srun: all ranks; else this process
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();

  cs::ParameterServerStrategy strategy(cluster);
  auto scope = strategy.scope();
  cs::Variable<double> w("w", cs::Shape{kFeatures}, cs::initializers::zeros(), {cs::optimizers::SGD{0.05}});

  cs::ClusterCoordinator coordinator(strategy);
  for (std::int64_t number = 0; number < kBatches; ++number) coordinator.schedule<&train_step>(number, w);
  coordinator.join();  // every push is applied now
  return check(w.pull()) ? 0 : 1;
}

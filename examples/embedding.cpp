// embedding.cpp -- an embedding table on the ps, trained by any free worker.
#include <capstan/capstan.hpp>
#include <cstdio>

namespace cs = capstan;

struct Batch {
  std::vector<std::int64_t> ids;
};

// Runs once on every worker: creates the worker's own stream of batches.
cs::Iterator<Batch> make_batches(std::int64_t rows) {
  return cs::Iterator<Batch>([rows, next = std::int64_t{cs::current_worker_index()}]() mutable {
    Batch batch;
    for (int i = 0; i < 256; ++i) batch.ids.push_back((next += 7919) % rows);
    return std::optional(batch);
  });
}

// Runs on any free worker. Plain C++: look up, compute, push.
double train_step(cs::PerWorker<cs::Iterator<Batch>> batches, cs::Variable<float> w) {
  const Batch batch = batches->next();
  cs::Rows<float> rows = w.lookup(batch.ids);  // only these rows
  double loss = 0;
  for (float& x : rows.values) {
    loss += 0.5 * (x - 1) * (x - 1);
    x = x - 1;  // the gradient of the loss, in place
  }
  w.push(cs::IndexedSlices<float>{batch.ids, rows.values});  // the ps applies the optimizer
  return loss / static_cast<double>(rows.values.size());
}

int main(int argc, char** argv) {
  cs::Cluster cluster = cs::Cluster::join(argc, argv);  // under mpirun or srun: all ranks; else this process
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();

  cs::ParameterServerStrategy strategy(cluster,
                                       cs::MinSizePartitioner{.max_shards = cluster.count(cs::Role::ps)});
  auto scope = strategy.scope();
  cs::Variable<float> w("w", cs::Shape{100'000, 64}, cs::initializers::normal(0, 0.1),
                        {cs::optimizers::SGD{0.5}});

  cs::ClusterCoordinator coordinator(strategy);
  auto batches = coordinator.create_per_worker_dataset<&make_batches>(w.rows());
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (int step = 0; step < 999; ++step) coordinator.schedule<&train_step>(batches, w);
    auto last = coordinator.schedule<&train_step>(batches, w);
    coordinator.join();
    std::printf("epoch %d: loss %.6f\n", epoch, last.fetch());
  }
}

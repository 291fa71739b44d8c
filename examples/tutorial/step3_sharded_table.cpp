// step3_sharded_table.cpp -- step 3 of the tutorial: shards on every ps; a worker transfers only the rows
// that it uses.
#include <capstan/capstan.hpp>

#include "problem.hpp"

namespace cs = capstan;

void train_step(std::int64_t number, cs::Variable<double> w) {
  const Batch batch = make_batch(number);
  const cs::Rows<double> rows = w.lookup(batch.ids);   // 256 of 1,000 rows
  w.push(batch.ids, gradient_of(batch, rows.values));  // repeated ids add up
}

int main(int argc, char** argv) {
  cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();

  cs::ParameterServerStrategy strategy(cluster, cs::FixedShardsPartitioner{cluster.count(cs::Role::ps)});
  auto scope = strategy.scope();
  cs::Variable<double> w("w", cs::Shape{kFeatures}, cs::initializers::zeros(), {cs::optimizers::SGD{0.05}});
  for (const cs::ShardInfo& shard : w.shards()) {
    std::printf("%s: %d rows on ps %d\n", shard.name.c_str(), static_cast<int>(shard.rows), shard.ps);
  }

  cs::ClusterCoordinator coordinator(strategy);
  for (std::int64_t number = 0; number < kBatches; ++number) coordinator.schedule<&train_step>(number, w);
  coordinator.join();
  return check(w.pull()) ? 0 : 1;
}

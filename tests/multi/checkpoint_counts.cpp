// checkpoint_counts.cpp -- variables of many kinds, saved by some number of ps and restored by another.
//
//   mpirun -np N checkpoint_counts SHARDS save DIRECTORY --capstan-ps=P
//   mpirun -np N checkpoint_counts SHARDS restore FROM TO [FROM TO]... --capstan-ps=P
//
// `save` trains three steps, saves to DIRECTORY, trains two more steps and prints a hash of every bit of
// every variable. For each pair, `restore` restores from FROM, saves to TO, trains two steps and prints the
// hash. The same steps give the same bits with any number of shards: only the coordinator pushes, and Adam's
// gradients are dense, since Adam counts the pushes of each shard.
#include <capstan/capstan.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/shard_memory.hpp"

namespace {

namespace cs = capstan;

struct Model {
  cs::Variable<float> table{"table/rows",
                            cs::Shape{37, 3},
                            cs::initializers::normal(0, 1, 3),
                            {cs::optimizers::Adam{.learning_rate = 0.1}}};
  cs::Variable<double> column{"column", cs::Shape{7}, {}, {cs::optimizers::Adagrad{.learning_rate = 0.5}}};
  cs::Variable<float> linear{"linear",
                             cs::Shape{9, 2},
                             cs::initializers::uniform(-1, 1, 5),
                             {cs::optimizers::FTRL{.learning_rate = 0.1, .l1 = 0.25}}};
  cs::Variable<cs::bfloat16> brain{"brain",
                                   cs::Shape{11},
                                   cs::initializers::constant(1),
                                   {cs::optimizers::Momentum{.learning_rate = 0.1}}};
  cs::Variable<std::int64_t> seen{"seen", cs::Shape{5}, {}, {cs::optimizers::SGD{.learning_rate = -1}}};
  cs::Variable<double> scalar{
      "scalar", cs::Shape{}, cs::initializers::constant(2), {cs::optimizers::AdamW{}}};

  void train(int steps) const {
    for (int step = 0; step < steps; ++step) {
      std::vector<float> gradient(table.rows() * table.width());
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i % 7) - 2.5F;
      table.push_dense(gradient);
      column.push(std::vector<std::int64_t>{6, 0, 3}, std::vector<double>{1, -2, 3});
      linear.push_dense(std::vector<float>(gradient.begin(), gradient.begin() + 18));
      brain.push(std::vector<std::int64_t>{10, 4},
                 std::vector<cs::bfloat16>{cs::bfloat16(1.5F), cs::bfloat16(-2.0F)});
      seen.push_dense(std::vector<std::int64_t>{1, 10, 100, 1000, 10000});
      scalar.push_dense(std::vector<double>{0.5});
    }
    table.flush();  // flushes all variables
  }

  void print() const {
    std::uint64_t hash = 14695981039346656037U;  // FNV-1a
    const auto add = [&hash](const auto& values) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
      for (std::size_t i = 0; i < values.size() * sizeof values[0]; ++i)
        hash = (hash ^ bytes[i]) * 1099511628211U;
    };
    add(table.pull());
    add(column.pull());
    add(linear.pull());
    add(brain.pull());
    add(seen.pull());
    add(scalar.pull());
    std::printf("%016llx\n", static_cast<unsigned long long>(hash));
  }
};

}  // namespace

int main(int argc, char** argv) {
  const cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const std::int64_t shards = std::atoll(argv[1]);
  cs::ParameterServerStrategy strategy(
      cluster, {.variable_partitioner = cs::FixedShardsPartitioner{shards}, .memory = cs::shard_memory()});
  const auto scope = strategy.scope();
  const Model model;
  if (std::string(argv[2]) == "save") {
    model.train(3);
    cs::CheckpointManager(strategy, {.directory = argv[3]}).save(1);
    model.train(2);
    model.print();
    return 0;
  }
  for (int i = 3; i + 1 < argc; i += 2) {
    if (cs::CheckpointManager(strategy, {.directory = argv[i]}).restore_latest() != 1) return 1;
    cs::CheckpointManager(strategy, {.directory = argv[i + 1]}).save(1);
    model.train(2);
    model.print();
  }
  return 0;
}

// main.cpp -- a program outside of Capstan's tree: a cluster in one process, a variable, a function on its
// worker.
#include <capstan/capstan.hpp>
#include <cstdio>

namespace cs = capstan;

float add_one(cs::Variable<float> w) {
  w.push_dense(std::vector<float>(w.rows(), -1));
  w.flush();
  return w.pull()[0];
}

int main(int argc, char** argv) {
  cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  cs::ParameterServerStrategy strategy(cluster);
  auto scope = strategy.scope();
  cs::Variable<float> w("w", cs::Shape{3}, cs::initializers::constant(4), {cs::optimizers::SGD{1}});
  cs::ClusterCoordinator coordinator(strategy);
  const float five = coordinator.schedule<&add_one>(w).fetch();
  std::printf("%g\n", static_cast<double>(five));
  return five == 5 ? 0 : 1;
}

// hello.cpp -- the smallest program: a variable on the ps, workers that pull and push, and their sum.
#include <capstan/capstan.hpp>
#include <cstdio>

namespace cs = capstan;

// Runs on any free worker. SGD with a learning rate of 1 is w -= g, so pushing -number adds it.
std::string add(cs::Variable<double> w, double number) {
  const cs::Buffer<double> values = w.pull();
  w.push_dense(std::vector<double>(values.size(), -number));
  return "worker " + std::to_string(cs::current_worker_index()) + " adds " +
         std::to_string(static_cast<int>(number)) + " to " + std::to_string(static_cast<int>(values[0]));
}

int main(int argc, char** argv) {
  cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();

  cs::ParameterServerStrategy strategy(cluster);
  auto scope = strategy.scope();
  cs::Variable<double> w("w", cs::Shape{3}, cs::initializers::zeros(), {cs::optimizers::SGD{1.0}});

  cs::ClusterCoordinator coordinator(strategy);
  std::vector<cs::RemoteValue<std::string>> lines;
  for (int number = 1; number <= 10; ++number) lines.push_back(coordinator.schedule<&add>(w, number));
  coordinator.join();  // every push is applied now
  for (const auto& line : lines) std::printf("%s\n", line.fetch().c_str());

  const cs::Buffer<double> sum = w.pull();
  std::printf("w is %g %g %g\n", sum[0], sum[1], sum[2]);
  return sum == std::vector<double>{55, 55, 55} ? 0 : 1;
}

// stale_synchronous.cpp -- least squares with one slow worker; no other worker gets more than two steps ahead
// of it.
#include <algorithm>
#include <capstan/capstan.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <thread>

namespace cs = capstan;
constexpr std::int64_t kBound = 2, kSteps = 300, kFeatures = 8;

double truth(std::int64_t feature) { return 1.0 / (1 + feature); }

// Runs on each worker: a step is a batch of 32 examples of y = truth . x. Returns the maximum number of steps
// by which it was ahead of the slowest worker; `ended` counts the steps of each worker.
std::int64_t train(cs::UpdateGroup group, cs::Variable<double> w, cs::Variable<std::int64_t> ended,
                   int part) {
  std::mt19937 random(part);
  std::normal_distribution<double> normal;
  std::int64_t ahead = 0;
  for (int step = 0; step < kSteps; ++step) {
    if (part == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the slow worker
    const cs::Buffer<double> values = w.pull();  // lacks at most kBound steps of any worker
    std::vector<double> gradient(kFeatures);
    for (int example = 0; example < 32; ++example) {
      double x[kFeatures], error = 0;
      for (std::int64_t i = 0; i < kFeatures; ++i) {
        x[i] = normal(random);
        error += x[i] * (values[i] - truth(i));
      }
      for (std::int64_t i = 0; i < kFeatures; ++i) gradient[i] += error * x[i] / 32;
    }
    w.push_dense(gradient);

    ended.scatter_add(std::vector<std::int64_t>{part}, std::vector<std::int64_t>{1});
    group.end_step();  // blocks while a worker is more than kBound steps behind
    const cs::Buffer<std::int64_t> steps = ended.pull();
    ahead = std::max(ahead, steps[part] - *std::min_element(steps.begin(), steps.end()));
  }
  group.leave();
  return ahead;
}

int main(int argc, char** argv) {
  cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();

  cs::ParameterServerStrategy strategy(cluster);
  auto scope = strategy.scope();
  cs::ClusterCoordinator coordinator(strategy);
  const cs::UpdateGroup group("model", cs::StaleSynchronous{kBound});
  const cs::Variable<double> w("w", cs::Shape{kFeatures}, {},
                               {.optimizer = cs::optimizers::SGD{0.05}, .group = group});
  const cs::Variable<std::int64_t> ended("ended", cs::Shape{coordinator.workers()});

  std::vector<cs::RemoteValue<std::int64_t>> leads;
  for (int part = 0; part < coordinator.workers(); ++part) {
    leads.push_back(coordinator.schedule<&train>(group, w, ended, part));
  }
  coordinator.join();
  std::int64_t ahead = 0;
  for (const auto& lead : leads) ahead = std::max(ahead, lead.fetch());
  double error = 0;
  const cs::Buffer<double> learned = w.pull();
  for (std::int64_t i = 0; i < kFeatures; ++i) error = std::max(error, std::abs(learned[i] - truth(i)));
  std::printf("%d workers, at most %d steps ahead, largest error %.1e\n", coordinator.workers(),
              static_cast<int>(ahead), error);
  return ahead <= kBound && error < 1e-4 ? 0 : 1;
}

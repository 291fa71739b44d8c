// step1_one_process.cpp -- step 1 of the tutorial: a training loop in one process.
#include <capstan/capstan.hpp>

#include "problem.hpp"

namespace cs = capstan;

int main(int argc, char** argv) {
  cs::Cluster cluster = cs::Cluster::join(argc, argv);  // every role in this process
  cs::ParameterServerStrategy strategy(cluster);
  auto scope = strategy.scope();
  cs::Variable<double> w("w", cs::Shape{kFeatures}, cs::initializers::zeros(), {cs::optimizers::SGD{0.05}});

  for (std::int64_t number = 0; number < kBatches; ++number) {
    const Batch batch = make_batch(number);
    const cs::Buffer<double> all = w.pull();
    std::vector<double> weights, gradient(kFeatures);
    for (const std::int64_t id : batch.ids) weights.push_back(all[id]);
    const std::vector<double> parts = gradient_of(batch, weights);
    for (std::size_t i = 0; i < parts.size(); ++i) gradient[batch.ids[i]] += parts[i];
    w.push_dense(gradient);  // w -= 0.05 * gradient
  }
  return check(w.pull()) ? 0 : 1;
}

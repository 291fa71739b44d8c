// logistic_regression.cpp -- L2-regularized logistic regression on libsvm text, synchronous or not.
#include <algorithm>
#include <capstan/capstan.hpp>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <span>

namespace cs = capstan;
constexpr double kLambda = 1e-4;
constexpr std::int64_t kAll = 1 << 30;
double squared(std::span<const double> x) { return std::inner_product(x.begin(), x.end(), x.begin(), 0.0); }
struct Objective {  // weight * (mean log-loss + lambda / 2 |w|^2), and number of correct predictions
  double value, correct;
  std::vector<double> gradient;
};
Objective evaluate(const cs::SparseBatch& data, std::span<const double> w, double weight = 1) {
  Objective sum{weight * kLambda / 2 * squared(w), 0, {w.begin(), w.end()}};
  for (double& g : sum.gradient) g *= weight * kLambda;
  for (std::int64_t row = 0; row < data.size(); ++row) {
    const double y = data.labels[row] > 0 ? 1 : -1, scale = weight / data.size();
    const auto from = data.offsets[row], to = data.offsets[row + 1];
    double margin = 0;
    for (auto k = from; k < to; ++k) margin += y * data.values[k] * w[data.ids[k]];
    const double e = std::exp(-std::abs(margin)), slope = -y * (margin > 0 ? e : 1) / (1 + e);
    sum.value += scale * (std::max(-margin, 0.0) + std::log1p(e));
    sum.correct += margin > 0;
    for (auto k = from; k < to; ++k) sum.gradient[data.ids[k]] += scale * slope * data.values[k];
  }
  return sum;
}

// One loop for both modes: a batch is the worker's part of the examples, or 256 of all examples.
void train(cs::UpdateGroup group, cs::Variable<double> w, std::string file, bool sync, int part, int parts,
           double n) {
  const auto local = cs::libsvm_batches({file}, kAll).legacy_rebatch(parts).shard(parts, part).cache();
  auto batches = (sync ? local : cs::libsvm_batches({file}, 256).shuffle(1000)).repeat().make_iterator();
  for (int step = 0; step < 200; ++step) {
    const cs::SparseBatch batch = batches.next();
    w.push_dense(evaluate(batch, w.pull(), sync ? batch.size() / n : 1.0).gradient);
    group.end_step();
  }
  group.leave();
}

int main(int argc, char** argv) try {
  cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const std::string mode = argc == 4 ? argv[1] : "";
  const bool sync = mode == "synchronous";
  if (!sync && mode != "asynchronous")
    return std::fprintf(stderr, "expected synchronous|asynchronous TRAIN_FILE TEST_FILE\n"), 2;
  const auto data = cs::libsvm_batches({argv[2]}, kAll).make_iterator().next();
  const std::int64_t features = 1 + *std::max_element(data.ids.begin(), data.ids.end());
  const auto test = cs::libsvm_batches({argv[3]}, kAll, {.features = features}).make_iterator().next();
  cs::ParameterServerStrategy strategy(cluster);
  auto scope = strategy.scope();
  const cs::Optimizer nesterov = cs::optimizers::Momentum{0.25, 0.99, true};  // for |x|^2 up to 16
  const cs::Optimizer optimizer = sync ? nesterov : cs::optimizers::Adagrad{0.1};
  const cs::Synchronization sum = cs::Synchronous{.average = false};
  const cs::UpdateGroup group("model", sync ? sum : cs::Asynchronous{});
  const cs::Variable<double> w("w", cs::Shape{features}, {}, {.optimizer = optimizer, .group = group});
  cs::ClusterCoordinator coordinator(strategy);
  double gap = 1;  // the objective is at most |gradient|^2 / (2 lambda) above the optimum
  for (int round = 1; round <= (sync ? 50 : 20) && gap > 1e-6; ++round) {
    for (int part = 0, parts = coordinator.workers(); part < parts; ++part)
      coordinator.schedule<&train>(group, w, argv[2], sync, part, parts, data.size());
    coordinator.join();
    group.restart();
    const Objective now = evaluate(data, w.pull());
    gap = squared(now.gradient) / (2 * kLambda);
    std::printf("%d steps: objective %.10f, the optimum within %.0e\n", 200 * round, now.value, gap);
  }
  std::printf("test accuracy %.4f\n", evaluate(test, w.pull()).correct / test.size());
  return sync && gap > 1e-6;
} catch (const std::exception& error) {  // missing or malformed file, dead rank
  return std::fprintf(stderr, "%s\n", error.what()), 2;
}

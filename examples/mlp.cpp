// mlp.cpp -- a network of one hidden layer on IDX images (MNIST); each worker's replicas share its steps.
#include <algorithm>
#include <capstan/capstan.hpp>
#include <cmath>
#include <cstdio>
#include <span>

namespace cs = capstan;
constexpr std::size_t kHidden = 128, kClasses = 10, kBatch = 64, kSteps = 500;
using Batch = std::vector<std::pair<cs::Array<std::uint8_t>, cs::Array<std::uint8_t>>>;  // images, labels
using Steps = cs::PerWorker<cs::Iterator<cs::PerReplica<Batch>>>;  // a batch per replica
struct Result {  // means over a batch, and gradients of the loss
  double loss = 0, correct = 0;
  std::vector<float> g1, g2;
};
Result evaluate(const Batch& batch, std::span<const float> w1, std::span<const float> w2) {
  Result mean{0, 0, std::vector<float>(w1.size()), std::vector<float>(w2.size())};
  for (const auto& [image, label] : batch) {
    std::vector<std::pair<std::size_t, float>> input{{image.size(), 1}};  // the last row is the bias
    for (std::size_t i = 0; i < image.size(); ++i)                        // most pixels are 0 and are skipped
      if (image.values[i] > 0) input.emplace_back(i, image.values[i] / 255.0F);
    float hidden[kHidden + 1] = {}, back[kHidden + 1] = {}, total = 0;
    std::vector<float> out(kClasses);
    for (const auto& [row, x] : input)
      for (std::size_t h = 0; h < kHidden; ++h) hidden[h] += x * w1[row * kHidden + h];
    for (float& h : hidden) h = &h == hidden + kHidden ? 1 : std::max(h, 0.0F);
    for (std::size_t i = 0; i < w2.size(); ++i) out[i % kClasses] += hidden[i / kClasses] * w2[i];
    const float largest = *std::max_element(out.begin(), out.end());
    const float& answer = out.at(label.values[0]);
    mean.correct += answer == largest ? 1.0 / batch.size() : 0;
    for (float& o : out) total += o = std::exp(o - largest);
    mean.loss -= std::log(answer / total) / batch.size();
    for (float& o : out) o = (o / total - (&o == &answer)) / batch.size();  // now the gradient of the loss
    for (std::size_t i = 0; i < w2.size(); ++i) {
      mean.g2[i] += hidden[i / kClasses] * out[i % kClasses];
      if (hidden[i / kClasses] > 0) back[i / kClasses] += out[i % kClasses] * w2[i];
    }
    for (const auto& [row, x] : input)
      for (std::size_t h = 0; h < kHidden; ++h) mean.g1[row * kHidden + h] += x * back[h];
  }
  return mean;
}

auto read(std::string images, std::string labels) {
  return cs::zip(cs::idx<std::uint8_t>({images}), cs::idx<std::uint8_t>({labels}));
}
cs::DistributedDataset<Batch> make_steps(std::string images, std::string labels) {
  const auto batches = read(images, labels).cache().shuffle(100'000).repeat().batch(kBatch);
  return cs::get_replicas().distribute_datasets_from_function([&](const auto&) { return batches; });
}
void fit(Steps steps, cs::Variable<float> w1, cs::Variable<float> w2) {
  const auto step = [&, v1 = w1.pull(), v2 = w2.pull()](cs::ReplicaContext& replica, const Batch& batch) {
    const Result mean = replica.all_reduce(cs::ReduceOp::MEAN, evaluate(batch, v1, v2));
    replica.on_first_replica([&] { w1.push_dense(mean.g1), w2.push_dense(mean.g2); });
  };
  cs::get_replicas().run(step, steps->next());
}

int main(int argc, char** argv) try {
  cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  const int rounds = argc == 6 ? std::atoi(argv[1]) : 0;
  if (rounds < 1) return std::fprintf(stderr, "expected ROUNDS and IDX files to train and test on\n"), 2;
  const Batch test = read(argv[4], argv[5]).batch(1 << 30).make_iterator().next();
  cs::ParameterServerStrategy strategy(cluster);
  auto scope = strategy.scope();
  const auto pixels = static_cast<std::int64_t>(test.at(0).first.size());
  const auto initial = cs::initializers::normal(0, 0.05);
  cs::Variable<float> w1("w1", cs::Shape{pixels + 1, kHidden}, initial, {cs::optimizers::Adam{}});
  cs::Variable<float> w2("w2", cs::Shape{kHidden + 1, kClasses}, initial, {cs::optimizers::Adam{}});
  cs::ClusterCoordinator coordinator(strategy);
  auto steps = coordinator.create_per_worker_dataset<&make_steps>(argv[2], argv[3]);
  for (int round = 1; round <= rounds; ++round) {
    for (std::size_t step = 0; step < kSteps; ++step) coordinator.schedule<&fit>(steps, w1, w2);
    coordinator.join();
    const Result now = evaluate(test, w1.pull(), w2.pull());
    std::printf("%d steps: test loss %.4f, accuracy %.4f\n", round * int{kSteps}, now.loss, now.correct);
  }
} catch (const std::exception& error) {  // missing or malformed file, dead rank
  return std::fprintf(stderr, "%s\n", error.what()), 2;
}

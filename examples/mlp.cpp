// mlp.cpp -- a network of one hidden layer on IDX images (MNIST); each worker's replicas share its steps.
#include <algorithm>
#include <capstan/capstan.hpp>
#include <cmath>
#include <cstdio>

namespace cs = capstan;
constexpr int kHidden = 128, kClasses = 10, kBatch = 64;
using Bytes = cs::Array<std::uint8_t>;
using Batch = std::vector<std::pair<Bytes, Bytes>>;  // images and labels

struct Result {
  double loss = 0, correct = 0;
  std::vector<float> g1, g2;
};
// Means over a batch and their gradients. The last row of each matrix is the bias, whose input is 1.
Result evaluate(const Batch& batch, const std::vector<float>& w1, const std::vector<float>& w2) {
  Result mean{0, 0, std::vector<float>(w1.size()), std::vector<float>(w2.size())};
  const float share = 1.0F / batch.size();
  for (const auto& [image, label] : batch) {
    std::vector<std::pair<std::size_t, float>> input{{image.size() * kHidden, 1.0F}};
    for (std::size_t i = 0; i < image.size(); ++i)  // most pixels are 0 and left out
      if (image.values[i] != 0) input.emplace_back(i * kHidden, image.values[i] / 255.0F);
    float hidden[kHidden + 1] = {}, out[kClasses] = {}, total = 0;
    for (const auto& [row, x] : input)
      for (int h = 0; h < kHidden; ++h) hidden[h] += x * w1[row + h];
    for (int h = 0; h < kHidden; ++h) hidden[h] = std::max(hidden[h], 0.0F);
    hidden[kHidden] = 1;
    for (int i = 0; i < (kHidden + 1) * kClasses; ++i) out[i % kClasses] += hidden[i / kClasses] * w2[i];
    const int answer = label.values[0];
    const float largest = *std::max_element(out, out + kClasses);
    mean.correct += out[answer] == largest ? share : 0;
    for (float& o : out) total += o = std::exp(o - largest);
    mean.loss -= std::log(out[answer] / total) * share;
    for (int c = 0; c < kClasses; ++c) out[c] = (out[c] / total - (c == answer)) * share;  // the gradient now
    float back[kHidden + 1] = {};
    for (int i = 0; i < (kHidden + 1) * kClasses; ++i) {
      mean.g2[i] += hidden[i / kClasses] * out[i % kClasses];
      if (hidden[i / kClasses] > 0) back[i / kClasses] += out[i % kClasses] * w2[i];
    }
    for (const auto& [row, x] : input)
      for (int h = 0; h < kHidden; ++h) mean.g1[row + h] += x * back[h];
  }
  return mean;
}

auto read(std::string images, std::string labels) {
  return cs::zip(cs::idx<std::uint8_t>({images}), cs::idx<std::uint8_t>({labels}));
}
// Made once on every worker: at each step a batch for each of its replicas.
cs::Dataset<std::vector<Batch>> make_steps(std::string images, std::string labels) {
  const auto data = read(images, labels).cache().shuffle(100'000).repeat().batch(kBatch);
  return cs::deal_out(data, cs::get_replicas().num_replicas_in_sync()).prefetch(2);
}

double train(cs::PerWorker<cs::Iterator<std::vector<Batch>>> steps, cs::Variable<float> w1,
             cs::Variable<float> w2) {
  const std::vector<float> v1 = w1.pull(), v2 = w2.pull();
  const auto step = [&](cs::ReplicaContext& replica, const Batch& batch) {
    const Result mean = replica.all_reduce(cs::ReduceOp::MEAN, evaluate(batch, v1, v2));
    replica.on_first_replica([&] { w1.push_dense(mean.g1), w2.push_dense(mean.g2); });  // one push a worker
    return mean.loss;
  };
  return cs::get_replicas().run(step, cs::PerReplica<Batch>{steps->next()}).values[0];
}

int main(int argc, char** argv) {
  cs::Cluster cluster = cs::Cluster::join(argc, argv);
  if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
  if (argc != 6) return std::fprintf(stderr, "expected EPOCHS, images and labels to train, to test\n"), 2;
  Batch data, test;
  for (auto& example : read(argv[2], argv[3])) data.push_back(example);
  for (auto& example : read(argv[4], argv[5])) test.push_back(example);

  cs::ParameterServerStrategy strategy(cluster);
  auto scope = strategy.scope();
  const std::int64_t pixels = data.at(0).first.size();
  const cs::VariableOptions adam{cs::optimizers::Adam{}};
  cs::Variable<float> w1("w1", {pixels + 1, kHidden}, cs::initializers::normal(0, std::sqrt(2.0 / pixels)),
                         adam);
  cs::Variable<float> w2("w2", {kHidden + 1, kClasses}, cs::initializers::normal(0, 0.1), adam);
  cs::ClusterCoordinator coordinator(strategy);
  auto steps = coordinator.create_per_worker_dataset<&make_steps>(argv[2], argv[3]);
  for (int epoch = 1; epoch <= std::atoi(argv[1]); ++epoch) {
    for (std::size_t step = 0; step < data.size() / (kBatch * strategy.num_replicas_in_sync()); ++step)
      coordinator.schedule<&train>(steps, w1, w2);
    coordinator.join();
    const Result now = evaluate(test, w1.pull(), w2.pull());
    std::printf("epoch %d: test loss %.4f, accuracy %.4f\n", epoch, now.loss, now.correct);
  }
}

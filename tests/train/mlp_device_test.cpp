// mlp_device_test.cpp -- compares a network on a GPU with one on the host; results are bitwise reproducible.
// Tests: src/train/mlp/device_bodies.hpp
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/gpu/gpu_to_test.hpp"
#include "train/metrics.hpp"
#include "train/mlp/device_network.hpp"
#include "train/mlp/network.hpp"

namespace capstan::train {
namespace {

class DeviceNetworkTest : public gpu::OnGpu {
 protected:
  struct Result {
    double loss = 0;
    std::vector<float> gradient;
    bool operator==(const Result&) const = default;
  };

  /// Adds the same examples at each call.
  template <class F>
  static void each_example(const Layers& layers, std::size_t examples, const F& add) {
    std::mt19937 random(3);
    for (std::size_t i = 0; i < examples; ++i) {
      std::vector<std::uint8_t> input(static_cast<std::size_t>(layers.widths().front()));
      for (auto& pixel : input) pixel = static_cast<std::uint8_t>(random());
      add(input, static_cast<std::uint8_t>(random() % static_cast<unsigned>(layers.widths().back())));
    }
  }

  static Result on_host(const Layers& layers, const std::vector<float>& values, std::size_t examples,
                        double scale, double l2) {
    Network network(layers);
    network.clear();
    each_example(layers, examples, [&](const auto& input, std::uint8_t label) { network.add(input, label); });
    const auto logits = network.forward(values);
    Scores scores;
    for (std::size_t i = 0; i < examples; ++i) {
      const std::size_t classes = logits.size() / examples;
      scores.add(logits.subspan(i * classes, classes), network.labels()[i]);
    }
    Result result{scores.log_loss_sum, std::vector<float>(values.size())};
    network.backward(values, scale, l2, result.gradient);
    return result;
  }

  Result on_gpu(DeviceNetwork& network, const std::vector<float>& values, std::size_t examples, double scale,
                double l2) const {
    network.clear(examples);
    each_example(network.layers(), examples,
                 [&](const auto& input, std::uint8_t label) { network.add(input, label); });
    const auto device_values = to_gpu(values);
    const gpu::Values<float> gradient(0, values.size());
    network.compute(device_values.data(), scale, l2, gradient.data());
    Result result{network.take_loss(), {}};
    result.gradient = to_host(gradient);
    return result;
  }
};

TEST_F(DeviceNetworkTest, MatchesHostGradients) {
  for (const auto& widths : std::vector<std::vector<std::int64_t>>{
           {5, 4}, {5, 6, 4}, {785, 7, 3, 10}, {200, 70, 130}, {3, 65, 1, 2}, {20, 30, 200}}) {
    const Layers layers(widths);
    std::mt19937 random(9);
    std::normal_distribution<float> normal(0, 0.3F);
    std::vector<float> values(layers.size());
    std::ranges::generate(values, [&] { return normal(random); });
    DeviceNetwork network(layers, *stream_);
    for (const std::size_t examples : {7, 1, 70}) {
      for (const double l2 : {0.0, 0.3}) {
        SCOPED_TRACE(std::to_string(widths.size()) + " widths, " + std::to_string(examples) + " examples");
        const double scale = 1 / static_cast<double>(examples);
        const Result host = on_host(layers, values, examples, scale, l2);
        const Result gpu = on_gpu(network, values, examples, scale, l2);
        EXPECT_NEAR(gpu.loss, host.loss, 1e-5 * host.loss);
        float largest = 0;
        for (const float value : host.gradient) largest = std::max(largest, std::abs(value));
        for (std::size_t i = 0; i < values.size(); ++i) {
          ASSERT_NEAR(gpu.gradient[i], host.gradient[i], 1e-5F * largest) << i;
        }
        EXPECT_TRUE(on_gpu(network, values, examples, scale, l2) == gpu) << "the same bits";
      }
    }
  }
}

TEST_F(DeviceNetworkTest, MatchesHostScores) {
  for (const auto& widths : std::vector<std::vector<std::int64_t>>{{5, 4}, {785, 7, 3, 10}, {200, 70, 130}}) {
    const Layers layers(widths);
    std::mt19937 random(9);
    std::normal_distribution<float> normal(0, 0.3F);
    std::vector<float> values(layers.size());
    std::ranges::generate(values, [&] { return normal(random); });
    DeviceNetwork network(layers, *stream_);
    Network host(layers);
    Scores expected;
    const auto device_values = to_gpu(values);
    for (const std::size_t examples : {70, 1, 0, 300}) {
      host.clear();
      network.clear(examples);
      each_example(layers, examples, [&](const auto& input, std::uint8_t label) {
        host.add(input, label);
        network.add(input, label);
      });
      network.score(device_values.data());
      if (examples == 0) continue;
      const auto logits = host.forward(values);
      const std::size_t classes = logits.size() / examples;
      for (std::size_t i = 0; i < examples; ++i) {
        expected.add(logits.subspan(i * classes, classes), host.labels()[i]);
      }
    }
    const Scores found = network.take_scores();
    EXPECT_EQ(found.examples, expected.examples);
    EXPECT_GT(found.correct, 0);
    EXPECT_NEAR(found.correct, expected.correct, 1) << "except for near ties";
    EXPECT_NEAR(found.log_loss_sum, expected.log_loss_sum, 1e-5 * expected.log_loss_sum);
    EXPECT_EQ(network.take_scores().examples, 0) << "take_scores() resets the scores";
    EXPECT_EQ(network.take_loss(), 0) << "score() adds nothing to the training loss";
  }
}

TEST_F(DeviceNetworkTest, PredictsFirstOfEqualLogits) {
  const Layers layers({1, 3});
  DeviceNetwork network(layers, *stream_);
  // Logits of any input are 1, 2, 2: only the biases, in the last row, are not 0.
  const auto device_values = to_gpu(std::vector<float>{0, 0, 0, 1, 2, 2});
  network.clear(6);
  for (const int label : {0, 1, 1, 2, 2, 2}) {
    network.add(std::vector<std::uint8_t>{7}, static_cast<std::uint8_t>(label));
  }
  network.score(device_values.data());
  const Scores found = network.take_scores();
  EXPECT_EQ(found.examples, 6);
  EXPECT_EQ(found.correct, 2);
  const double total = std::log(std::exp(-1.0) + 2);
  EXPECT_NEAR(found.log_loss_sum, 6 * total + 1, 1e-6);
}

TEST_F(DeviceNetworkTest, EmptyBatchHasZeroGradient) {
  const Layers layers({3, 2});
  DeviceNetwork network(layers, *stream_);
  const Result result = on_gpu(network, std::vector<float>(layers.size(), 1), 0, 1, 0.1);
  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(result.gradient, std::vector<float>(layers.size()));
}

}  // namespace
}  // namespace capstan::train

// mlp_test.cpp -- the network compared with its definition in double, and images with their labels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "io/temporary_directory.hpp"
#include "support/expect_error.hpp"
#include "train/mlp/images.hpp"
#include "train/mlp/network.hpp"

namespace capstan::train {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

using Bytes = std::vector<std::uint8_t>;

struct Example {
  Bytes input;
  std::uint8_t label;
};

std::vector<double> logits_of(const Layers& layers, const std::vector<double>& values, const Bytes& input) {
  std::vector<double> below(input.begin(), input.end());
  for (double& x : below) x /= 255;
  for (std::size_t layer = 0; layer < layers.count(); ++layer) {
    below.push_back(1);
    const auto out = static_cast<std::size_t>(layers.widths()[layer + 1]);
    std::vector<double> above(out);
    for (std::size_t j = 0; j < out; ++j) {
      for (std::size_t i = 0; i < below.size(); ++i) {
        above[j] += below[i] * values[layers.begin(layer) + i * out + j];
      }
      if (layer + 1 < layers.count()) above[j] = std::max(above[j], 0.0);
    }
    below = above;
  }
  return below;
}

double objective(const Layers& layers, const std::vector<double>& values, const std::vector<Example>& batch,
                 double scale, double l2) {
  double sum = 0;
  for (const auto& [input, label] : batch) {
    const std::vector<double> logits = logits_of(layers, values, input);
    double total = 0;
    for (const double z : logits) total += std::exp(z);
    sum += std::log(total) - logits[label];
  }
  double squares = 0;
  for (std::size_t layer = 0; layer < layers.count(); ++layer) {
    const auto weights = static_cast<std::size_t>(layers.widths()[layer] * layers.widths()[layer + 1]);
    for (std::size_t i = 0; i < weights; ++i) squares += std::pow(values[layers.begin(layer) + i], 2);
  }
  return scale * (sum + static_cast<double>(batch.size()) * l2 / 2 * squares);
}

TEST(Network, GradientsMatchDefinition) {
  std::mt19937 random(4);
  std::uniform_int_distribution<int> pixel(0, 255), label(0, 3);
  std::normal_distribution<float> normal(0, 0.7F);
  for (const auto& widths : std::vector<std::vector<std::int64_t>>{{5, 4}, {5, 6, 4}, {5, 7, 3, 4}}) {
    const Layers layers(widths);
    Network network(layers);
    std::vector<float> values(layers.size()), gradient(layers.size());
    for (float& x : values) x = normal(random);
    std::vector<Example> batch(6);
    network.clear();
    for (auto& [input, answer] : batch) {
      input.resize(5);
      for (auto& x : input) x = static_cast<std::uint8_t>(pixel(random));
      answer = static_cast<std::uint8_t>(label(random));
      network.add(input, answer);
    }
    std::vector<double> exact(values.begin(), values.end());
    const auto logits = network.forward(values);
    ASSERT_EQ(logits.size(), 6u * 4u);
    for (std::size_t i = 0; i < 6; ++i) {
      const auto expected = logits_of(layers, exact, batch[i].input);
      for (std::size_t c = 0; c < 4; ++c) EXPECT_NEAR(logits[i * 4 + c], expected[c], 1e-5);
    }
    const double scale = 0.2, l2 = 0.3;
    network.backward(values, scale, l2, gradient);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double step = 1e-6, before = exact[i];
      exact[i] = before + step;
      const double above = objective(layers, exact, batch, scale, l2);
      exact[i] = before - step;
      const double below = objective(layers, exact, batch, scale, l2);
      exact[i] = before;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * step), 2e-5)
          << i << " of " << widths.size() << " widths";
    }
    double squares = 0;
    for (std::size_t layer = 0; layer < layers.count(); ++layer) {
      for (std::int64_t i = 0; i < widths[layer] * widths[layer + 1]; ++i) {
        squares += std::pow(exact[layers.begin(layer) + static_cast<std::size_t>(i)], 2);
      }
    }
    EXPECT_NEAR(layers.squares(values), squares, 1e-9);
  }
}

TEST(Network, GradientsOfPartsAddUp) {
  const Layers layers({3, 4, 2});
  std::vector<float> values(layers.size(), 0.1F), complete(layers.size()), parts(layers.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += static_cast<float>(i % 5) / 10 - 0.2F;
  Network network(layers);
  for (int count = 0; count < 5; ++count)
    network.add(Bytes{9, static_cast<std::uint8_t>(50 * count), 200}, count % 2);
  network.forward(values);
  network.backward(values, 0.2, 0.1, complete);
  for (int count = 0; count < 5; ++count) {
    network.clear();
    network.add(Bytes{9, static_cast<std::uint8_t>(50 * count), 200}, count % 2);
    network.forward(values);
    network.backward(values, 0.2, 0.1, parts);
  }
  for (std::size_t i = 0; i < complete.size(); ++i) EXPECT_NEAR(complete[i], parts[i], 1e-6);
}

TEST(Network, GradientsOfAnyLossMatchDefinition) {
  const Layers layers({3, 4, 2});
  Network network(layers);
  std::mt19937 random(6);
  std::normal_distribution<float> normal(0, 0.7F);
  std::vector<float> values(layers.size()), inputs(5 * 3), slopes(5 * 2), gradient(layers.size()),
      input_slopes(5 * 3);
  for (auto* numbers : {&values, &inputs, &slopes}) {
    for (float& x : *numbers) x = normal(random);
  }
  // The loss is the dot product of the logits and `slopes`.
  const auto loss = [&](const std::vector<float>& v, const std::vector<float>& rows) {
    network.set_inputs(rows);
    const auto logits = network.forward(v);
    double sum = 0;
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      sum += static_cast<double>(logits[i]) * static_cast<double>(slopes[i]);
    }
    return sum;
  };
  loss(values, inputs);
  EXPECT_EQ(network.batch(), 5u);
  network.backward(values, slopes, gradient, input_slopes);
  const auto expect_differences = [&](std::vector<float>& numbers, const std::vector<float>& computed) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const float step = 1e-3F, before = numbers[i];
      numbers[i] = before + step;
      const double above = loss(values, inputs);
      numbers[i] = before - step;
      const double below = loss(values, inputs);
      numbers[i] = before;
      EXPECT_NEAR(computed[i], (above - below) / (2 * static_cast<double>(step)), 3e-3) << i;
    }
  };
  expect_differences(values, gradient);
  expect_differences(inputs, input_slopes);
}

TEST(Layers, InitialWeightsAreNormalAndBiasesZero) {
  const Layers layers({200, 50, 10});
  const auto values = layers.initial_values(0, 7);
  EXPECT_THAT(values.shape, ElementsAre(201, 50));
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < 10'000; ++i) {
    sum += static_cast<double>(values.values[i]);
    squares += std::pow(static_cast<double>(values.values[i]), 2);
  }
  EXPECT_NEAR(sum / 10'000, 0, 0.004);
  EXPECT_NEAR(squares / 10'000, 2.0 / 200, 0.0006);
  for (std::size_t i = 10'000; i < 10'050; ++i) EXPECT_EQ(values.values[i], 0);
  EXPECT_EQ(values.values, layers.initial_values(0, 7).values);
  EXPECT_NE(values.values, layers.initial_values(0, 8).values);
}

std::string idx_file(std::vector<std::uint8_t> shape, const std::string& bytes) {
  std::string file{0, 0, 8, static_cast<char>(shape.size())};
  for (const std::uint8_t size : shape) file += std::string(3, '\0') + static_cast<char>(size);
  return file + bytes;
}

class ReadImages : public testing::Test {
 protected:
  io::TemporaryDirectory directory_;
};

TEST_F(ReadImages, ReadsAShareWithItsLabels) {
  const auto images = directory_.write("i", idx_file({3, 1, 2}, "abcdef")),
             labels = directory_.write("l", idx_file({3}, {4, 2, 1}));
  const Images even = read_images({{images, images}, {labels, labels}}, 0, 2);
  EXPECT_EQ(even.total, 6);
  EXPECT_EQ(even.classes, 5);
  EXPECT_EQ(even.pixels, 2);
  EXPECT_THAT(even.labels, ElementsAre(4, 1, 2));
  EXPECT_THAT(even.image(1), ElementsAre('e', 'f'));
  EXPECT_THAT(read_images({{images}, {labels}}, 1, 2).values, ElementsAre('c', 'd'));
}

TEST_F(ReadImages, ReportsInvalidFiles) {
  const auto images = directory_.write("i", idx_file({3, 1, 2}, "abcdef")),
             labels = directory_.write("l", idx_file({2}, {4, 2}));
  const std::string i = images.string(), l = labels.string();
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [&] {
                         read_images({{images}, {labels}}, 0, 1);
                       }),
              StartsWith(i + " has 3 images and " + l + " has 2 labels"));
  const auto five = directory_.write("five", idx_file({5}, "01234"));
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [&] {
                         read_images({{labels}, {five}}, 0, 1);
                       }),
              StartsWith(l + " has 2 images and " + five.string() + " has 5 labels"));
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [&] {
                         read_images({{images}, {images}}, 0, 1);
                       }),
              StartsWith(i + ": an item has 2 values"));
  const auto text = directory_.write("t", "1 2:3\n");
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [&] {
                         read_images({{text}, {labels}}, 0, 1);
                       }),
              testing::HasSubstr(text.string() + ": "));
  const auto none = directory_.write("none", idx_file({0, 2}, "")),
             no_labels = directory_.write("n", idx_file({0}, ""));
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [&] {
                         read_images({{none}, {no_labels}}, 0, 1);
                       }),
              StartsWith(none.string()));
}

}  // namespace
}  // namespace capstan::train

// parameters.cpp -- collection of dense parameters.
#include "train/deep/parameters.hpp"

namespace capstan::train {

void DenseParameters::add_zeros(std::size_t count) {
  initial.resize(size() + count, 0);
  penalized.resize(size(), 1);
}

void DenseParameters::add_layers(const Layers& layers, std::uint64_t seed) {
  for (std::size_t layer = 0; layer < layers.count(); ++layer) {
    const auto values = layers.initial_values(layer, seed).values;
    initial.insert(initial.end(), values.begin(), values.end());
    const auto biases = static_cast<std::size_t>(layers.widths()[layer + 1]);
    penalized.resize(size() - biases, 1);
    penalized.resize(size(), 0);
  }
}

double sum_of_squares(std::span<const std::uint8_t> penalized, std::span<const float> values) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (penalized[i] != 0) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return sum;
}

}  // namespace capstan::train

// parameters.hpp -- dense parameters of a model, in one array.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/mlp/network.hpp"

namespace capstan::train {

struct DenseParameters {
  std::vector<float> initial = {};
  std::vector<std::uint8_t> penalized = {};  // 1: a weight; 0: a bias, which has no L2 penalty

  std::size_t size() const noexcept { return initial.size(); }
  /// Appends weights that start at 0.
  void add_zeros(std::size_t count);
  /// Appends fully connected layers, in the order of Layers::begin.
  void add_layers(const Layers& layers, std::uint64_t seed);
};

/// Sum of the squares of the penalized values.
double sum_of_squares(std::span<const std::uint8_t> penalized, std::span<const float> values);

}  // namespace capstan::train

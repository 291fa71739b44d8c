// network.hpp -- fully connected layers with ReLU between them, softmax and cross-entropy at the end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capstan/array.hpp"

namespace capstan::train {

/// Layer l maps widths[l] values to widths[l + 1]: a matrix of one row an input, and a last row of biases.
class Layers {
 public:
  explicit Layers(std::vector<std::int64_t> widths);

  std::size_t count() const noexcept { return widths_.size() - 1; }
  const std::vector<std::int64_t>& widths() const noexcept { return widths_; }
  Shape shape(std::size_t layer) const { return {widths_[layer] + 1, widths_[layer + 1]}; }
  /// Where a layer's matrix is in one array of all of them.
  std::size_t begin(std::size_t layer) const { return begins_[layer]; }
  std::size_t size() const noexcept { return begins_.back(); }

  /// Weights are normal with variance 2 / inputs (He et al., ICCV 2015), biases 0.
  Array<float> initial_values(std::size_t layer, std::uint64_t seed) const;
  /// Sum of the squares of the weights, without biases.
  double squares(std::span<const float> values) const;

 private:
  std::vector<std::int64_t> widths_;
  std::vector<std::size_t> begins_;
};

/// Computes with such layers; a thread's own. Values and gradients are one array each, see Layers::begin.
class Network {
 public:
  explicit Network(Layers layers);
  const Layers& layers() const noexcept { return layers_; }

  /// Makes room for a batch, and adds an input to it: bytes are divided by 255.
  void clear();
  void add(std::span<const std::uint8_t> input, std::uint8_t label);
  std::size_t batch() const noexcept { return labels_.size(); }
  std::span<const std::uint8_t> labels() const noexcept { return labels_; }

  /// Logits of the batch, a row an example.
  std::span<const float> forward(std::span<const float> values);
  /// After forward: adds the gradient of scale * (sum of the examples' losses + batch * l2 / 2 |weights|^2).
  void backward(std::span<const float> values, double scale, double l2, std::span<float> gradient);

 private:
  std::size_t inputs(std::size_t layer) const {
    return static_cast<std::size_t>(layers_.widths()[layer]) + 1;  // with the 1 that biases are multiplied by
  }

  Layers layers_;
  std::vector<std::vector<float>> activations_;  // of each layer's inputs, a row an example
  std::vector<float> logits_, slopes_, below_;
  std::vector<std::uint8_t> labels_;
};

}  // namespace capstan::train

// network.hpp -- fully connected layers with ReLU between them. The loss is softmax with cross-entropy, or
// the caller's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capstan/array.hpp"

namespace capstan::train {

/// Shapes of the layers. Layer l maps widths[l] values to widths[l + 1]: a matrix of one row per input, and a
/// last row of biases.
class Layers {
 public:
  explicit Layers(std::vector<std::int64_t> widths);

  std::size_t count() const noexcept { return widths_.size() - 1; }
  const std::vector<std::int64_t>& widths() const noexcept { return widths_; }
  Shape shape(std::size_t layer) const { return {widths_[layer] + 1, widths_[layer + 1]}; }
  /// Offset of a layer's matrix in one array of all layers.
  std::size_t begin(std::size_t layer) const { return begins_[layer]; }
  std::size_t size() const noexcept { return begins_.back(); }

  /// Initial weights are normal with variance 2 / inputs (He et al., ICCV 2015), biases 0.
  Array<float> initial_values(std::size_t layer, std::uint64_t seed) const;
  /// Sum of the squares of the weights, without biases.
  double squares(std::span<const float> values) const;

 private:
  std::vector<std::int64_t> widths_;
  std::vector<std::size_t> begins_;
};

/// Computes with such layers on the CPU. Used by one thread at a time. Values and gradients are one array
/// each, see Layers::begin.
class Network {
 public:
  explicit Network(Layers layers);
  const Layers& layers() const noexcept { return layers_; }

  /// Starts an empty batch.
  void clear();
  /// Adds an input; its bytes are divided by 255.
  void add(std::span<const std::uint8_t> input, std::uint8_t label);
  /// Starts a batch of inputs without labels, a row per example.
  void set_inputs(std::span<const float> rows);
  std::size_t batch() const noexcept { return activations_.front().size() / inputs(0); }
  std::span<const std::uint8_t> labels() const noexcept { return labels_; }

  /// Computes the logits of the batch, a row per example; valid until the next call.
  std::span<const float> forward(std::span<const float> values);
  /// Adds the gradient of scale * (sum of the examples' losses + batch * l2 / 2 |weights|^2) to `gradient`.
  /// REQUIRES: forward() with the same values.
  void backward(std::span<const float> values, double scale, double l2, std::span<float> gradient);
  /// Adds the gradient of any loss to `gradient`, from its derivative by the logits. Sets `input_slopes` to
  /// its derivative by the inputs, a row per example; empty: not wanted. REQUIRES: forward() with the same
  /// values.
  void backward(std::span<const float> values, std::span<const float> logit_slopes, std::span<float> gradient,
                std::span<float> input_slopes);

 private:
  /// Adds decay * weights too. The derivative by the logits is in slopes_.
  void propagate(std::span<const float> values, float decay, std::span<float> gradient,
                 std::span<float> input_slopes);
  std::size_t inputs(std::size_t layer) const {
    return static_cast<std::size_t>(layers_.widths()[layer]) +
           1;  // includes the 1 that multiplies the biases
  }

  Layers layers_;
  std::vector<std::vector<float>> activations_;  // inputs of each layer, a row per example
  std::vector<float> logits_, slopes_, input_slopes_;
  std::vector<std::uint8_t> labels_;
};

}  // namespace capstan::train

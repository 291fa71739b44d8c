// device_network.hpp -- Network on a GPU: loss and gradient of a batch from values in its memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/gpu.hpp"
#include "train/metrics.hpp"
#include "train/mlp/network.hpp"

namespace capstan::train {

/// Computes in float; results are bitwise reproducible. Used by one thread at a time, which blocks only for
/// the copy of the previous batch, in take_loss() and take_scores(), and where memory grows.
class DeviceNetwork {
 public:
  /// `stream` must outlive the network. Throws Error(resource_exhausted).
  DeviceNetwork(Layers layers, const gpu::Stream& stream);
  const Layers& layers() const noexcept { return layers_; }

  /// Starts a batch of `examples` inputs.
  void clear(std::size_t examples);
  /// Adds an input; its bytes are divided by 255.
  void add(std::span<const std::uint8_t> input, std::uint8_t label);

  /// Enqueues on the stream the computation of the gradient of scale * (sum of the examples' losses + batch *
  /// l2 / 2 |weights|^2). `values` and `gradient` are arrays of all layers in the GPU's memory, see
  /// Layers::begin.
  /// REQUIRES: as many calls of add() as clear() announced. Throws Error: resource_exhausted;
  /// invalid_argument for a batch or layer of 2^31 floats or more.
  void compute(const float* values, double scale, double l2, float* gradient);

  /// Blocks. Returns the sum of the examples' losses, without the penalty, since the previous call.
  double take_loss();

  /// Enqueues the scoring of the batch. REQUIRES and throws as compute() does.
  void score(const float* values);
  /// Blocks. Returns the scores since the previous call, without logits.
  Scores take_scores();

 private:
  std::uint32_t width(std::size_t layer) const { return static_cast<std::uint32_t>(layers_.widths()[layer]); }
  void reserve_buffers();
  void copy_batch();
  void forward(const float* values);
  void backward(const float* values, double scale, double l2, float* gradient);

  Layers layers_;
  const gpu::Stream& stream_;
  std::uint32_t examples_ = 0;
  std::size_t added_ = 0;
  gpu::PinnedMemory pinned_;  // the inputs' bytes, then the labels
  std::optional<gpu::Event> copied_;
  gpu::Values<std::uint8_t> batch_;
  std::vector<gpu::Values<float>> activations_;  // inputs of each layer: a row per example, which ends in 1
  gpu::Values<float> partial_;                   // partial sums of a matrix product
  gpu::Values<float> slopes_;                    // derivatives with respect to a layer's results
  gpu::Values<float> losses_;                    // by example
  std::uint32_t parts_ = 1;                      // number of partial sums of the logits
  gpu::Values<float> correct_;                   // by example: 1 if correct, else 0
  gpu::Values<double> sums_;  // training loss, loss of scored examples, number of correct ones
  std::int64_t scored_ = 0;
};

}  // namespace capstan::train

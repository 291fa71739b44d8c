// device_network.hpp -- Network by a GPU: loss and gradient of a batch from values in its memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/gpu.hpp"
#include "train/metrics.hpp"
#include "train/mlp/network.hpp"

namespace capstan::train {

/// Computes in float; every run gives the same bits. Used by one thread at a time, which waits only for the
/// copy of an earlier batch, in take_loss(), and where memory grows.
class DeviceNetwork {
 public:
  /// The stream outlives it. Throws Error(resource_exhausted).
  DeviceNetwork(Layers layers, const gpu::Stream& stream);
  const Layers& layers() const noexcept { return layers_; }

  /// Makes room for a batch, and adds an input to it: bytes are divided by 255.
  void clear(std::size_t examples);
  void add(std::span<const std::uint8_t> input, std::uint8_t label);

  /// Gives the stream the work that leaves in `gradient` that of scale * (sum of the examples' losses + batch
  /// * l2 / 2 |weights|^2). Both are arrays of all layers in the GPU's memory, see Layers::begin. REQUIRES:
  /// the batch has as many examples as clear() has made room for. Throws Error(resource_exhausted).
  void compute(const float* values, double scale, double l2, float* gradient);

  /// Waits. The sum of the examples' losses, without the penalty, since it was last called.
  double take_loss();

  /// Gives the stream the work that scores the batch. REQUIRES and throws as compute() does.
  void score(const float* values);
  /// Waits. Of what was scored since it was last called; no logits are among them.
  Scores take_scores();

 private:
  std::uint32_t width(std::size_t layer) const { return static_cast<std::uint32_t>(layers_.widths()[layer]); }
  void make_room();
  void start_batch();
  void forward(const float* values);
  void backward(const float* values, double scale, double l2, float* gradient);

  Layers layers_;
  const gpu::Stream& stream_;
  std::uint32_t examples_ = 0;
  std::size_t added_ = 0;
  gpu::PinnedMemory pinned_;  // the inputs' bytes, then the labels
  std::optional<gpu::Event> copied_;
  gpu::Values<std::uint8_t> batch_;
  std::vector<gpu::Values<float>> activations_;  // of each layer's inputs, a row an example, which ends in 1
  gpu::Values<float> partial_;                   // parts of a product of matrices
  gpu::Values<float> slopes_;                    // of a layer's results
  gpu::Values<float> losses_;                    // of examples
  std::uint32_t parts_ = 1;                      // of the logits
  gpu::Values<float> correct_;                   // 1 for each example that is
  gpu::Values<double> sums_;  // of losses; of losses of what is scored; of what is correct of it
  std::int64_t scored_ = 0;
};

}  // namespace capstan::train

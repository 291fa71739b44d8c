// device_network.cu -- see device_network.hpp. Up to three matrix products per layer, each followed by a
// kernel that adds up the partial sums.
#include "train/mlp/device_network.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "capstan/error.hpp"
#include "gpu/blocks.cuh"
#include "gpu/each.cuh"
#include "gpu/gemm.hpp"
#include "train/mlp/device_bodies.hpp"

namespace capstan::train {
namespace {

using gpu::each;
using gpu::Transposed;

constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 31;

/// Indices in sums_.
constexpr std::size_t kLoss = 0, kScoredLoss = 1, kCorrect = 2, kSums = 3;

}  // namespace

DeviceNetwork::DeviceNetwork(Layers layers, const gpu::Stream& stream)
    : layers_(std::move(layers)),
      stream_(stream),
      activations_(layers_.count()),
      sums_(stream.device(), kSums) {
  gpu::fill_with_zeros(stream_, sums_.data(), kSums * sizeof(double));
}

void DeviceNetwork::clear(std::size_t examples) {
  if (copied_) copied_->wait();
  const std::size_t bytes = examples * (width(0) + std::size_t{1});
  if (pinned_.size() < bytes) {
    pinned_ = {};
    pinned_ = gpu::PinnedMemory(bytes);
  }
  examples_ = static_cast<std::uint32_t>(examples);
  added_ = 0;
}

void DeviceNetwork::add(std::span<const std::uint8_t> input, std::uint8_t label) {
  CAPSTAN_ASSERT(added_ < examples_ && input.size() == width(0));
  std::memcpy(pinned_.data() + added_ * input.size(), input.data(), input.size());
  pinned_.data()[std::size_t{examples_} * input.size() + added_] = std::byte{label};
  ++added_;
}

void DeviceNetwork::reserve_buffers() {
  std::size_t widest = 0, partial = 0;
  for (std::size_t layer = 0; layer < layers_.count(); ++layer) {
    const std::uint64_t in = width(layer) + std::uint64_t{1}, out = width(layer + 1) + std::uint64_t{1};
    if (std::max({examples_ * in, examples_ * out, in * out}) >= kMaxElements) {
      throw Error(Code::invalid_argument,
                  "a batch or layer is too large for the GPU kernels, expected fewer than 2^31 floats: use a "
                  "smaller --batch or "
                  "narrower --hidden layers");
    }
  }
  for (std::size_t layer = 0; layer < layers_.count(); ++layer) {
    const std::uint32_t in = width(layer), out = width(layer + 1);
    gpu::grow(activations_[layer], stream_.device(), std::size_t{examples_} * (in + 1));
    const std::size_t up = gpu::gemm_parts(examples_, out, in + 1) * std::size_t{out};
    const std::size_t down = gpu::gemm_parts(examples_, in, out) * std::size_t{in};
    partial = std::max({partial, up, layer == 0 ? 0 : down});
    widest = std::max<std::size_t>(widest, out);
  }
  gpu::grow(partial_, stream_.device(), examples_ * partial);
  gpu::grow(slopes_, stream_.device(), examples_ * widest);
  gpu::grow(losses_, stream_.device(), examples_);
  gpu::grow(batch_, stream_.device(), examples_ * (width(0) + std::size_t{1}));
}

void DeviceNetwork::compute(const float* values, double scale, double l2, float* gradient) {
  CAPSTAN_ASSERT(added_ == examples_);
  if (examples_ == 0) return gpu::fill_with_zeros(stream_, gradient, layers_.size() * sizeof(float));
  const gpu::DeviceGuard guard(stream_);
  copy_batch();
  forward(values);
  backward(values, scale, l2, gradient);
}

/// Starts the copy of the batch to the GPU.
void DeviceNetwork::copy_batch() {
  reserve_buffers();
  gpu::copy(stream_, batch_.data(), pinned_.data(), examples_ * (width(0) + std::size_t{1}));
  if (!copied_) copied_.emplace(stream_.device());
  copied_->record(stream_);
}

void DeviceNetwork::score(const float* values) {
  CAPSTAN_ASSERT(added_ == examples_);
  if (examples_ == 0) return;
  const gpu::DeviceGuard guard(stream_);
  copy_batch();
  gpu::grow(correct_, stream_.device(), examples_);
  forward(values);
  const std::uint32_t classes = width(layers_.count());
  const std::uint8_t* const labels = batch_.data() + std::size_t{examples_} * width(0);
  each<1>(stream_,
          ScoreBody{{partial_.data(), parts_, std::uint64_t{examples_} * classes},
                    classes,
                    labels,
                    losses_.data(),
                    correct_.data()},
          examples_);
  gpu::each_block(stream_, gpu::SumBody{losses_.data(), examples_, sums_.data() + kScoredLoss}, 1);
  gpu::each_block(stream_, gpu::SumBody{correct_.data(), examples_, sums_.data() + kCorrect}, 1);
  scored_ += examples_;
}

Scores DeviceNetwork::take_scores() {
  double sums[2] = {0, 0};
  gpu::copy(stream_, sums, sums_.data() + kScoredLoss, sizeof sums);
  gpu::fill_with_zeros(stream_, sums_.data() + kScoredLoss, sizeof sums);
  stream_.wait();
  return {std::exchange(scored_, 0), static_cast<std::int64_t>(sums[1]), sums[0]};
}

/// Leaves the partial sums of the logits in partial_.
void DeviceNetwork::forward(const float* values) {
  each<2>(stream_, InputBody{batch_.data(), activations_[0].data(), Divider(width(0) + 1)},
          examples_ * (width(0) + 1));
  for (std::size_t layer = 0; layer < layers_.count(); ++layer) {
    const std::uint32_t in = width(layer) + 1, out = width(layer + 1);
    parts_ = gpu::gemm_parts(examples_, out, in);
    const std::uint64_t apart = std::uint64_t{examples_} * out;
    gpu::multiply(stream_, {.rows = examples_,
                            .columns = out,
                            .inner = in,
                            .a = activations_[layer].data(),
                            .a_stride = in,
                            .b = values + layers_.begin(layer),
                            .b_stride = out,
                            .out = partial_.data(),
                            .out_stride = out,
                            .parts = parts_,
                            .part_apart = apart});
    if (layer + 1 == layers_.count()) return;
    each<2>(stream_,
            ReluBody{{partial_.data(), parts_, apart}, activations_[layer + 1].data(), Divider(out + 1)},
            examples_ * (out + 1));
  }
}

void DeviceNetwork::backward(const float* values, double scale, double l2, float* gradient) {
  const std::uint32_t classes = width(layers_.count());
  const std::uint8_t* const labels = batch_.data() + std::size_t{examples_} * width(0);
  gpu::each_block(stream_,
                  SlopesBody{{partial_.data(), parts_, std::uint64_t{examples_} * classes},
                             classes,
                             labels,
                             static_cast<float>(scale),
                             slopes_.data(),
                             losses_.data()},
                  examples_);
  gpu::each_block(stream_, gpu::SumBody{losses_.data(), examples_, sums_.data() + kLoss}, 1);
  const auto decay = static_cast<float>(scale * l2 * examples_);
  for (std::size_t layer = layers_.count(); layer-- > 0;) {
    const std::uint32_t in = width(layer), out = width(layer + 1);
    const float* const matrix = values + layers_.begin(layer);
    float* const into = gradient + layers_.begin(layer);
    gpu::multiply(stream_, {.rows = in + 1,
                            .columns = out,
                            .inner = examples_,
                            .a = activations_[layer].data(),
                            .a_stride = in + 1,
                            .a_transposed = Transposed::yes,
                            .b = slopes_.data(),
                            .b_stride = out,
                            .out = into,
                            .out_stride = out});
    if (decay > 0) each<2>(stream_, DecayBody{matrix, into, decay}, in * out);
    if (layer == 0) return;
    const std::uint32_t parts = gpu::gemm_parts(examples_, in, out);
    const std::uint64_t apart = std::uint64_t{examples_} * in;
    gpu::multiply(stream_, {.rows = examples_,
                            .columns = in,
                            .inner = out,
                            .a = slopes_.data(),
                            .a_stride = out,
                            .b = matrix,
                            .b_stride = out,
                            .b_transposed = Transposed::yes,
                            .out = partial_.data(),
                            .out_stride = in,
                            .parts = parts,
                            .part_apart = apart});
    each<2>(
        stream_,
        MaskBody{{partial_.data(), parts, apart}, activations_[layer].data(), slopes_.data(), Divider(in)},
        examples_ * in);
  }
}

double DeviceNetwork::take_loss() {
  double loss = 0;
  gpu::copy(stream_, &loss, sums_.data() + kLoss, sizeof(double));
  gpu::fill_with_zeros(stream_, sums_.data() + kLoss, sizeof(double));
  stream_.wait();
  return loss;
}

}  // namespace capstan::train

// network.cpp -- forward and backward as matrix products.
#include "train/mlp/network.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "train/blas.hpp"
#include "train/counter_rng.hpp"

namespace capstan::train {
namespace {

/// Uniform in (0, 1].
double uniform(const CounterRng& random, std::uint64_t index) {
  return static_cast<double>((random.bits(index) >> 11) + 1) * 0x1p-53;
}

/// Standard normal (Box and Muller, 1958).
float normal(const CounterRng& random, std::uint64_t index) {
  const double radius = std::sqrt(-2 * std::log(uniform(random, 2 * index)));
  return static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform(random, 2 * index + 1)));
}

/// Replaces the logits by scale * (probability - [answer]).
void softmax_slopes(std::span<float> row, std::size_t answer, double scale) {
  const double largest = static_cast<double>(*std::max_element(row.begin(), row.end()));
  double total = 0;
  for (const float logit : row) total += std::exp(static_cast<double>(logit) - largest);
  for (std::size_t c = 0; c < row.size(); ++c) {
    const double probability = std::exp(static_cast<double>(row[c]) - largest) / total;
    row[c] = static_cast<float>(scale * (probability - (c == answer ? 1 : 0)));
  }
}

}  // namespace

Layers::Layers(std::vector<std::int64_t> widths) : widths_(std::move(widths)), begins_{0} {
  for (std::size_t layer = 0; layer < count(); ++layer) {
    begins_.push_back(begins_.back() + static_cast<std::size_t>(elements_of(shape(layer))));
  }
}

Array<float> Layers::initial_values(std::size_t layer, std::uint64_t seed) const {
  Array<float> values(shape(layer));
  const CounterRng random(seed, layer);
  const auto weights = static_cast<std::size_t>(widths_[layer] * widths_[layer + 1]);
  const float stddev = std::sqrt(2 / static_cast<float>(widths_[layer]));
  for (std::size_t i = 0; i < weights; ++i) values.values[i] = stddev * normal(random, i);
  return values;
}

double Layers::squares(std::span<const float> values) const {
  double sum = 0;
  for (std::size_t layer = 0; layer < count(); ++layer) {
    const auto weights = static_cast<std::size_t>(widths_[layer] * widths_[layer + 1]);
    for (const float x : values.subspan(begin(layer), weights)) {
      sum += static_cast<double>(x) * static_cast<double>(x);
    }
  }
  return sum;
}

Network::Network(Layers layers) : layers_(std::move(layers)), activations_(layers_.count()) {
  use_one_blas_thread();
}

void Network::clear() {
  labels_.clear();
  activations_.front().clear();
}

void Network::add(std::span<const std::uint8_t> input, std::uint8_t label) {
  for (const std::uint8_t pixel : input) activations_.front().push_back(static_cast<float>(pixel) / 255);
  activations_.front().push_back(1);
  labels_.push_back(label);
}

void Network::set_inputs(std::span<const float> rows) {
  clear();
  const std::size_t width = inputs(0) - 1;
  for (std::size_t first = 0; first < rows.size(); first += width) {
    const auto row = rows.subspan(first, width);
    activations_.front().insert(activations_.front().end(), row.begin(), row.end());
    activations_.front().push_back(1);
  }
}

std::span<const float> Network::forward(std::span<const float> values) {
  const std::size_t examples = batch();
  for (std::size_t layer = 0; layer < layers_.count(); ++layer) {
    const bool last = layer + 1 == layers_.count();
    const std::size_t out = static_cast<std::size_t>(layers_.widths()[layer + 1]);
    const std::size_t stride = last ? out : inputs(layer + 1);
    std::vector<float>& result = last ? logits_ : activations_[layer + 1];
    result.resize(examples * stride);
    const auto in = static_cast<std::int64_t>(inputs(layer));
    multiply(Transposed::no, Transposed::no, static_cast<std::int64_t>(examples),
             static_cast<std::int64_t>(out), in, 1, activations_[layer].data(), in,
             values.data() + layers_.begin(layer), static_cast<std::int64_t>(out), 0, result.data(),
             static_cast<std::int64_t>(stride));
    if (last) break;
    for (std::size_t i = 0; i < examples; ++i) {
      float* row = result.data() + i * stride;
      for (std::size_t j = 0; j < out; ++j) row[j] = std::max(row[j], 0.0F);
      row[out] = 1;
    }
  }
  return logits_;
}

void Network::backward(std::span<const float> values, double scale, double l2, std::span<float> gradient) {
  const std::size_t examples = batch();
  const std::size_t classes = logits_.size() / examples;
  slopes_ = logits_;
  for (std::size_t i = 0; i < examples; ++i) {
    softmax_slopes(std::span(slopes_).subspan(i * classes, classes), labels_[i], scale);
  }
  propagate(values, static_cast<float>(scale * l2 * static_cast<double>(examples)), gradient, {});
}

void Network::backward(std::span<const float> values, std::span<const float> logit_slopes,
                       std::span<float> gradient, std::span<float> input_slopes) {
  slopes_.assign(logit_slopes.begin(), logit_slopes.end());
  propagate(values, 0, gradient, input_slopes);
}

void Network::propagate(std::span<const float> values, float decay, std::span<float> gradient,
                        std::span<float> input_slopes) {
  const std::size_t examples = batch();
  for (std::size_t layer = layers_.count(); layer-- > 0;) {
    const auto out = layers_.widths()[layer + 1];
    const auto in = static_cast<std::int64_t>(inputs(layer));
    const auto count = static_cast<std::int64_t>(examples);
    const float* matrix = values.data() + layers_.begin(layer);
    float* into = gradient.data() + layers_.begin(layer);
    multiply(Transposed::yes, Transposed::no, in, out, count, 1, activations_[layer].data(), in,
             slopes_.data(), out, 1, into, out);
    for (std::int64_t i = 0; decay > 0 && i < (in - 1) * out; ++i) into[i] += decay * matrix[i];
    if (layer == 0 && input_slopes.empty()) return;
    if (layer > 0) input_slopes_.resize(examples * static_cast<std::size_t>(in - 1));
    multiply(Transposed::no, Transposed::yes, count, in - 1, out, 1, slopes_.data(), out, matrix, out, 0,
             layer > 0 ? input_slopes_.data() : input_slopes.data(), in - 1);
    if (layer == 0) return;
    for (std::size_t i = 0; i < examples; ++i) {
      const float* active = activations_[layer].data() + i * static_cast<std::size_t>(in);
      float* row = input_slopes_.data() + i * static_cast<std::size_t>(in - 1);
      for (std::int64_t j = 0; j + 1 < in; ++j) row[j] = active[j] > 0 ? row[j] : 0;
    }
    std::swap(slopes_, input_slopes_);
  }
}

}  // namespace capstan::train

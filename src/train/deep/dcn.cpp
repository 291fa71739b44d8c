// dcn.cpp -- DCN-v2 (Wang et al., WWW 2021), stacked: cross layers, whose result the top network receives.
//
//   x_{l+1} = x_0 * (W_l x_l + b_l) + x_l, element by element; x_0 are the inputs of the example
#include <algorithm>
#include <utility>

#include "train/blas.hpp"
#include "train/deep/interaction.hpp"

namespace capstan::train {
namespace {

Layers cross_layers(const DeepShape& shape) {
  return Layers(std::vector<std::int64_t>(static_cast<std::size_t>(shape.cross_layers) + 1,
                                          static_cast<std::int64_t>(shape.inputs())));
}

class Dcn final : public Interaction {
 public:
  explicit Dcn(const DeepShape& shape)
      : width_(shape.inputs()),
        layers_(cross_layers(shape)),
        states_(layers_.count()),
        maps_(layers_.count()) {
    use_one_blas_thread();
  }

  std::size_t width() const override { return width_; }
  void add_parameters(std::uint64_t seed, DenseParameters& parameters) const override {
    parameters.add_layers(layers_, seed);
  }

  std::span<const float> forward(const FieldBatch& batch, std::span<const float> parameters,
                                 std::span<float> /*logits*/) override {
    const std::size_t n = width_;
    features_ = batch.inputs;
    for (std::size_t layer = 0; layer < layers_.count(); ++layer) {
      states_[layer].resize(batch.examples * (n + 1));
      maps_[layer].resize(batch.examples * n);
      for (std::size_t i = 0; i < batch.examples; ++i) {
        *std::copy_n(features_.data() + i * n, n, states_[layer].data() + i * (n + 1)) = 1;
      }
      multiply(Transposed::no, Transposed::no, to_int(batch.examples), to_int(n), to_int(n + 1), 1,
               states_[layer].data(), to_int(n + 1), parameters.data() + layers_.begin(layer), to_int(n), 0,
               maps_[layer].data(), to_int(n));
      for (std::size_t k = 0; k < features_.size(); ++k) features_[k] += batch.inputs[k] * maps_[layer][k];
    }
    return features_;
  }

  void backward(const FieldBatch& batch, std::span<const float> parameters,
                std::vector<float>& feature_slopes, std::span<const float> /*logit_slopes*/,
                std::span<float> gradient, FieldBatch& slopes) override {
    const std::size_t n = width_;
    std::swap(slopes.inputs, feature_slopes);  // by the current x_{l+1}
    std::vector<float> first_slopes(slopes.inputs.size()), map_slopes(slopes.inputs.size());
    for (std::size_t layer = layers_.count(); layer-- > 0;) {
      for (std::size_t k = 0; k < map_slopes.size(); ++k) {
        map_slopes[k] = slopes.inputs[k] * batch.inputs[k];
        first_slopes[k] += slopes.inputs[k] * maps_[layer][k];
      }
      multiply(Transposed::yes, Transposed::no, to_int(n + 1), to_int(n), to_int(batch.examples), 1,
               states_[layer].data(), to_int(n + 1), map_slopes.data(), to_int(n), 1,
               gradient.data() + layers_.begin(layer), to_int(n));
      multiply(Transposed::no, Transposed::yes, to_int(batch.examples), to_int(n), to_int(n), 1,
               map_slopes.data(), to_int(n), parameters.data() + layers_.begin(layer), to_int(n), 1,
               slopes.inputs.data(), to_int(n));
    }
    for (std::size_t k = 0; k < first_slopes.size(); ++k) slopes.inputs[k] += first_slopes[k];
  }

 private:
  static std::int64_t to_int(std::size_t n) { return static_cast<std::int64_t>(n); }

  std::size_t width_;
  Layers layers_;
  std::vector<float> features_;
  std::vector<std::vector<float>> states_;  // x_l, with a 1 at the end of each row
  std::vector<std::vector<float>> maps_;    // W_l x_l + b_l
};

}  // namespace

std::unique_ptr<Interaction> make_dcn(const DeepShape& shape) { return std::make_unique<Dcn>(shape); }

}  // namespace capstan::train

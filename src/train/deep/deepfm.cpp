// deepfm.cpp -- DeepFM (Guo et al., IJCAI 2017): a factorization machine beside the network, with the same
// embeddings.
//
//   term = sum_f w_f x_f + sum_{f<g} <v_f, v_g> x_f x_g
//
// over the 13 integers and the 39 fields f; x of a field is 1. The weights and vectors of the integers
// are dense parameters: 13 weights, then 13 vectors. The top network receives the inputs unchanged.
#include <numeric>
#include <utility>

#include "train/deep/interaction.hpp"
#include "train/deep/kernels.hpp"

namespace capstan::train {
namespace {

class DeepFm final : public Interaction {
 public:
  explicit DeepFm(const DeepShape& shape)
      : inputs_(shape.inputs()), factors_(static_cast<std::size_t>(shape.factors)) {}

  std::size_t width() const override { return inputs_; }
  void add_parameters(std::uint64_t /*seed*/, DenseParameters& parameters) const override {
    // From 0 the vectors of integers still learn, by their products with the embeddings.
    parameters.add_zeros(kIntegers * (1 + factors_));
  }

  std::span<const float> forward(const FieldBatch& batch, std::span<const float> parameters,
                                 std::span<float> logits) override {
    sums_.assign(batch.examples * factors_, 0);
    for (std::size_t i = 0; i < batch.examples; ++i) {
      float* sum = sums_.data() + i * factors_;
      const float squares =
          add_vectors(integers(batch, parameters, i), sum) + add_vectors(embeddings(batch, i), sum);
      const float pairs = std::inner_product(sum, sum + factors_, sum, -squares);
      const float* x = batch.inputs.data() + i * inputs_;
      logits[i] = std::inner_product(x, x + kIntegers, parameters.begin(), logits[i]) + pairs / 2;
    }
    return batch.inputs;
  }

  void backward(const FieldBatch& batch, std::span<const float> parameters,
                std::vector<float>& feature_slopes, std::span<const float> logit_slopes,
                std::span<float> gradient, FieldBatch& slopes) override {
    std::swap(slopes.inputs, feature_slopes);
    for (std::size_t i = 0; i < batch.examples; ++i) {
      const float slope = logit_slopes[i];
      const float* sum = sums_.data() + i * factors_;
      add_pair_gradients(integers(batch, parameters, i), sum, slope, gradient.data() + kIntegers);
      add_pair_gradients(embeddings(batch, i), sum, slope, slopes.inputs.data() + i * inputs_ + kIntegers);
      const float* x = batch.inputs.data() + i * inputs_;
      for (std::size_t k = 0; k < kIntegers; ++k) gradient[k] += slope * x[k];
    }
  }

 private:
  static constexpr std::size_t kIntegers = DeepShape::kIntegers;

  ScaledVectors integers(const FieldBatch& batch, std::span<const float> parameters,
                         std::size_t example) const {
    return {.vectors = parameters.data() + kIntegers,
            .scales = batch.inputs.data() + example * inputs_,
            .count = kIntegers,
            .factors = factors_};
  }
  ScaledVectors embeddings(const FieldBatch& batch, std::size_t example) const {
    return {.vectors = batch.inputs.data() + example * inputs_ + kIntegers,
            .count = DeepShape::kFields,
            .factors = factors_};
  }

  std::size_t inputs_, factors_;
  std::vector<float> sums_;  // by example: sum_f x_f v_f
};

}  // namespace

std::unique_ptr<Interaction> make_deepfm(const DeepShape& shape) { return std::make_unique<DeepFm>(shape); }

}  // namespace capstan::train

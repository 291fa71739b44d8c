// deepfm.cpp -- DeepFM (Guo et al., IJCAI 2017): a factorization machine beside the network, with the same
// embeddings.
//
//   term = sum_f w_f x_f + sum_{f<g} <v_f, v_g> x_f x_g
//
// over the 13 integers and the 39 fields f; x of a field is 1. The weights and vectors of the integers
// are dense parameters: 13 weights, then 13 vectors. The top network receives the inputs unchanged.
#include <algorithm>

#include "train/deep/interaction.hpp"

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

  void forward(const FieldBatch& batch, std::span<const float> parameters, std::vector<float>& features,
               std::span<float> logits) override {
    features = batch.inputs;
    sums_.assign(batch.examples * factors_, 0);
    for (std::size_t i = 0; i < batch.examples; ++i) {
      float squares = 0;
      float* sum = sums_.data() + i * factors_;
      for (std::size_t field = 0; field < kIntegers + kFields; ++field) {
        const auto [vector, x] = term(batch, parameters, i, field);
        for (std::size_t f = 0; f < factors_; ++f) {
          sum[f] += vector[f] * x;
          squares += vector[f] * x * vector[f] * x;
        }
        if (field < kIntegers) logits[i] += x * parameters[field];
      }
      float pairs = -squares;
      for (std::size_t f = 0; f < factors_; ++f) pairs += sum[f] * sum[f];
      logits[i] += pairs / 2;
    }
  }

  void backward(const FieldBatch& batch, std::span<const float> parameters,
                std::span<const float> feature_slopes, std::span<const float> logit_slopes,
                std::span<float> gradient, FieldBatch& slopes) override {
    slopes.inputs.assign(feature_slopes.begin(), feature_slopes.end());
    for (std::size_t i = 0; i < batch.examples; ++i) {
      const float slope = logit_slopes[i];
      const float* sum = sums_.data() + i * factors_;
      for (std::size_t field = 0; field < kIntegers + kFields; ++field) {
        const auto [vector, x] = term(batch, parameters, i, field);
        const bool integer = field < kIntegers;
        float* into = integer ? gradient.data() + kIntegers + field * factors_
                              : slopes.inputs.data() + embedding(i, field);
        for (std::size_t f = 0; f < factors_; ++f) into[f] += slope * x * (sum[f] - vector[f] * x);
        if (integer) gradient[field] += slope * x;
      }
    }
  }

 private:
  static constexpr std::size_t kIntegers = DeepShape::kIntegers, kFields = DeepShape::kFields;

  struct Term {
    const float* vector;
    float x;
  };
  /// Offset of an embedding in the inputs of a batch.
  std::size_t embedding(std::size_t example, std::size_t field) const {
    return example * inputs_ + kIntegers + (field - kIntegers) * factors_;
  }
  Term term(const FieldBatch& batch, std::span<const float> parameters, std::size_t example,
            std::size_t field) const {
    if (field < kIntegers) {
      return {parameters.data() + kIntegers + field * factors_, batch.inputs[example * inputs_ + field]};
    }
    return {batch.inputs.data() + embedding(example, field), 1};
  }
  std::size_t inputs_, factors_;
  std::vector<float> sums_;  // by example: sum_f x_f v_f
};

}  // namespace

std::unique_ptr<Interaction> make_deepfm(const DeepShape& shape) { return std::make_unique<DeepFm>(shape); }

}  // namespace capstan::train

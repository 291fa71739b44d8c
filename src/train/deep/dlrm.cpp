// dlrm.cpp -- DLRM (Naumov et al., 2019): a bottom network maps the integers to a vector as long as an
// embedding. The top network receives this vector, and the dot products of all pairs of the 40 vectors.
//
// The bottom network has ReLU between its layers, and a linear last layer.
#include <algorithm>

#include "train/blas.hpp"
#include "train/deep/interaction.hpp"

namespace capstan::train {
namespace {

std::vector<std::int64_t> bottom_widths(const DeepShape& shape) {
  std::vector<std::int64_t> widths{DeepShape::kIntegers};
  widths.insert(widths.end(), shape.bottom.begin(), shape.bottom.end());
  widths.push_back(shape.factors);
  return widths;
}

class Dlrm final : public Interaction {
 public:
  explicit Dlrm(const DeepShape& shape)
      : inputs_(shape.inputs()),
        factors_(static_cast<std::size_t>(shape.factors)),
        bottom_(Layers(bottom_widths(shape))) {}

  std::size_t width() const override { return factors_ + kVectors * (kVectors - 1) / 2; }
  void add_parameters(std::uint64_t seed, DenseParameters& parameters) const override {
    parameters.add_layers(bottom_.layers(), seed);
  }

  std::span<const float> forward(const FieldBatch& batch, std::span<const float> parameters,
                                 std::span<float> /*logits*/) override {
    integers_.resize(batch.examples * kIntegers);
    for (std::size_t i = 0; i < batch.examples; ++i) {
      std::copy_n(batch.inputs.data() + i * inputs_, kIntegers, integers_.data() + i * kIntegers);
    }
    bottom_.set_inputs(integers_);
    const std::span<const float> mapped = bottom_.forward(parameters);
    vectors_.resize(batch.examples * kVectors * factors_);
    features_.resize(batch.examples * width());
    for (std::size_t i = 0; i < batch.examples; ++i) {
      float* vectors = vectors_.data() + i * kVectors * factors_;
      std::copy_n(mapped.data() + i * factors_, factors_, vectors);
      std::copy_n(batch.inputs.data() + i * inputs_ + kIntegers, inputs_ - kIntegers, vectors + factors_);
      multiply_pairs(Transposed::yes, kVectors, factors_, vectors, factors_, vectors, products_.data());
      float* row = std::copy_n(vectors, factors_, features_.data() + i * width());
      for (std::size_t a = 1; a < kVectors; ++a) row = std::copy_n(products_.data() + a * kVectors, a, row);
    }
    return features_;
  }

  void backward(const FieldBatch& batch, std::span<const float> parameters,
                std::vector<float>& feature_slopes, std::span<const float> /*logit_slopes*/,
                std::span<float> gradient, FieldBatch& slopes) override {
    slopes.inputs.resize(batch.inputs.size());
    bottom_slopes_.resize(batch.examples * factors_);
    std::vector<float> vector_slopes(kVectors * factors_);
    for (std::size_t i = 0; i < batch.examples; ++i) {
      const float* row = feature_slopes.data() + i * width();
      const float* pair = row + factors_;
      for (std::size_t a = 0; a < kVectors; ++a) {
        products_[a * kVectors + a] = 0;
        for (std::size_t b = 0; b < a; ++b, ++pair) {
          products_[a * kVectors + b] = products_[b * kVectors + a] = *pair;
        }
      }
      multiply_pairs(Transposed::no, factors_, kVectors, products_.data(), kVectors,
                     vectors_.data() + i * kVectors * factors_, vector_slopes.data());
      float* bottom = bottom_slopes_.data() + i * factors_;
      for (std::size_t f = 0; f < factors_; ++f) bottom[f] = row[f] + vector_slopes[f];
      std::copy_n(vector_slopes.data() + factors_, inputs_ - kIntegers,
                  slopes.inputs.data() + i * inputs_ + kIntegers);
    }
    bottom_.backward(parameters, bottom_slopes_, gradient, {});
  }

 private:
  static constexpr std::size_t kIntegers = DeepShape::kIntegers;
  static constexpr std::size_t kVectors = 1 + DeepShape::kFields;

  /// out (kVectors x columns) = a * b, where b may be transposed; rows of b and of vectors are factors_ long.
  void multiply_pairs(Transposed b_transposed, std::size_t columns, std::size_t inner, const float* a,
                      std::size_t a_stride, const float* b, float* out) const {
    const auto to_int = [](std::size_t n) { return static_cast<std::int64_t>(n); };
    multiply(Transposed::no, b_transposed, to_int(kVectors), to_int(columns), to_int(inner), 1, a,
             to_int(a_stride), b, to_int(factors_), 0, out, to_int(columns));
  }

  std::size_t inputs_, factors_;
  Network bottom_;
  std::vector<float> integers_, vectors_, features_, bottom_slopes_;
  std::vector<float> products_ = std::vector<float>(kVectors * kVectors);  // of one example
};

}  // namespace

std::unique_ptr<Interaction> make_dlrm(const DeepShape& shape) { return std::make_unique<Dlrm>(shape); }

}  // namespace capstan::train

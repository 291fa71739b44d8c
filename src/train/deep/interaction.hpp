// interaction.hpp -- the part in which the deep click models differ: how the inputs of an example meet before
// the top network.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "train/deep/parameters.hpp"
#include "train/deep/shape.hpp"

namespace capstan::train {

/// Values, or derivatives of the loss by them, of a batch.
struct FieldBatch {
  std::size_t examples = 0;
  std::vector<float> inputs = {};  // DeepShape::inputs() per example: integers, then embeddings
};

/// Used by one thread at a time.
class Interaction {
 public:
  virtual ~Interaction() = default;
  /// Number of features per example that the top network receives.
  virtual std::size_t width() const = 0;
  /// Appends its own dense parameters.
  virtual void add_parameters(std::uint64_t seed, DenseParameters& parameters) const = 0;
  /// Returns the features, valid until `batch` changes or the next call. Adds the interaction's own term to
  /// the logit of each example.
  virtual std::span<const float> forward(const FieldBatch& batch, std::span<const float> parameters,
                                         std::span<float> logits) = 0;
  /// Adds the gradient of the parameters, and sets the derivatives by the embeddings. Those by the
  /// integers are unspecified. Leaves `feature_slopes` unspecified. REQUIRES: forward() with the same
  /// arguments.
  virtual void backward(const FieldBatch& batch, std::span<const float> parameters,
                        std::vector<float>& feature_slopes, std::span<const float> logit_slopes,
                        std::span<float> gradient, FieldBatch& slopes) = 0;
};

std::unique_ptr<Interaction> make_deepfm(const DeepShape& shape);
std::unique_ptr<Interaction> make_dlrm(const DeepShape& shape);
std::unique_ptr<Interaction> make_dcn(const DeepShape& shape);
/// Makes the interaction of shape.model.
std::unique_ptr<Interaction> make_interaction(const DeepShape& shape);

}  // namespace capstan::train

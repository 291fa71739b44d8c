// deep_network.hpp -- a deep click model: embeddings, an interaction and a top network, on the CPU.
//
//   logit = sum of the weights of the fields + term of the interaction
//           + top network(features of the interaction)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "train/deep/interaction.hpp"
#include "train/deep/kernels.hpp"
#include "train/deep/parameters.hpp"
#include "train/deep/shape.hpp"
#include "train/mlp/network.hpp"
#include "train/sparse/examples.hpp"
#include "train/sparse/l2_penalty.hpp"
#include "train/tasks.hpp"

namespace capstan::train {

/// Values or gradients of a batch.
struct DeepValues {
  std::vector<float> rows = {};        // DeepShape::row_width() per id of the batch
  std::vector<float> parameters = {};  // the interaction's, then the top network's
};

/// Used by one thread at a time. Batches have dense inputs: SparseFormat::fields.
class DeepNetwork {
 public:
  explicit DeepNetwork(const DeepShape& shape);
  /// Resizes `values` for the batch.
  void resize(const SparseExamples& batch, DeepValues& values) const;
  /// Initial values of the parameters, which depend on `seed`.
  DenseParameters parameters(std::uint64_t seed) const;

  /// Computes one logit per example; valid until the next call.
  std::span<const float> logits(const SparseExamples& batch, const DeepValues& values);
  /// Sets `gradient` to the gradient of scale * (sum of log-losses + penalties), and returns both sums. The
  /// penalty of the rows is that of FactorizationMachine. The weights of the layers have the strength of the
  /// factors.
  TrainResult gradients(const SparseExamples& batch, const DeepValues& values, double scale, L2Penalty l2,
                        DeepValues& gradient);

 private:
  FieldSlots fields_of(const SparseExamples& batch, std::size_t example) const;
  /// Collects the inputs of the examples, and adds the weights of their fields to the logits.
  void gather(const SparseExamples& batch, std::span<const float> rows);
  /// Adds the derivatives by the inputs to the gradients of the rows.
  void scatter(const SparseExamples& batch, std::span<float> rows) const;
  /// Adds the penalties' gradient; returns the sum of the penalties.
  double penalize(const SparseExamples& batch, const DeepValues& values, double scale, L2Penalty l2,
                  DeepValues& gradient) const;

  DeepShape shape_;
  std::unique_ptr<Interaction> interaction_;
  std::size_t top_begin_;  // of the top network's parameters
  std::vector<std::uint8_t> penalized_;
  Network top_;
  FieldBatch fields_, field_slopes_;
  std::vector<float> feature_slopes_, logits_, logit_slopes_;
};

}  // namespace capstan::train

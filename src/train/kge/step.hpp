// step.hpp -- one training step: the rows that a batch uses, and the loss and sparse gradients from those
// rows.
//
//   step.plan(batch, seed, number);                              // needs no parameters yet
//   // look up step.entity_ids() and step.relation_ids()
//   Loss loss = step.compute(entity_rows, relation_rows);
//   // push step.entity_gradients() and step.relation_gradients(): rows in the order of the ids
//
// Each triple is trained in both directions, (head, r) -> tail and (tail, r + relations) -> head, with
// softmax cross-entropy over the answer and negatives that all queries of the batch share. The logit of each
// negative is raised by log((entities - 1) / negatives), so that the sampled softmax estimates the full one.
// A negative that equals the answer is excluded for that query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/kge/aligned.hpp"
#include "train/kge/batch_plan.hpp"
#include "train/kge/kernels.hpp"
#include "train/kge/model.hpp"
#include "train/kge/triple.hpp"

namespace capstan::kge {

/// Keeps its buffers: a step that is no larger than an earlier one does not allocate. Used by one thread at a
/// time. Gradients are those of the sum of the losses of a batch, not of the mean.
class Step {
 public:
  /// Throws Error(invalid_argument) for an invalid option.
  explicit Step(const StepOptions& options);

  /// Draws the negatives and collects the rows that compute() needs. The negatives depend only on `seed` and
  /// `batch_number`. REQUIRES: a non-empty batch with ids in range.
  void plan(std::span<const Triple> batch, std::uint64_t seed, std::uint64_t batch_number);

  /// Sorted and unique; valid until the next `plan`.
  std::span<const std::int64_t> entity_ids() const noexcept { return plan_.entity_ids(); }
  std::span<const std::int64_t> relation_ids() const noexcept { return plan_.relation_ids(); }

  /// The rows are in the order of the ids, without padding: `dim` floats for an entity,
  /// relation_width(model, dim) for a relation.
  Loss compute(std::span<const float> entity_rows, std::span<const float> relation_rows);

  /// Same shapes as the rows given to `compute`; valid until the next `compute`.
  std::span<const float> entity_gradients() const noexcept { return entity_gradients_.span(); }
  std::span<const float> relation_gradients() const noexcept { return relation_gradients_.span(); }

  const StepOptions& options() const noexcept { return plan_.options(); }

 private:
  struct Rows {
    const float* entities;
    const float* relations;
  };

  const float* relation_row(Rows rows, std::size_t query) const noexcept {
    return rows.relations + plan_.relation(query) * relation_width_;
  }
  void gather_negatives(Rows rows);
  void make_queries(Rows rows, std::size_t first, std::size_t count);
  double weigh_candidates(Rows rows, std::size_t first, std::size_t count);
  void score_negatives(std::size_t count);
  SoftmaxResult weigh_query(std::size_t query, const float* answer_row);
  void multiply_gradients(std::size_t first, std::size_t count);
  void add_query_side(Rows rows, std::size_t first, std::size_t count);
  void add_negative_side();
  void add_penalty(Rows rows);

  BatchPlan plan_;
  ModelKind model_;
  Comparison comparison_;
  std::size_t dim_;
  std::size_t relation_width_;
  std::size_t negative_count_;

  // Linked lists of the negatives that are the same entity, ending in -1: the first negative, by position of
  // the entity among the unique rows, and the next one, by negative.
  std::vector<std::int32_t> first_negative_;
  std::vector<std::int32_t> next_negative_;

  // Buffers of one block of queries, so that its scores stay in the cache.
  AlignedFloats queries_;
  AlignedFloats query_gradients_;
  AlignedFloats scores_;
  std::vector<SoftmaxResult> softmax_;

  AlignedFloats negatives_;
  AlignedFloats negative_gradients_;
  AlignedFloats negative_norms_;    // of distances only: squared norms
  AlignedFloats negative_weights_;  // of distances only: sums of the weights over all queries
  AlignedFloats entity_gradients_;
  AlignedFloats relation_gradients_;
  std::vector<std::int32_t> use_counts_;
};

}  // namespace capstan::kge

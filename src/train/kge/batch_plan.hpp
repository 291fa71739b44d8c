// batch_plan.hpp -- the rows that a batch uses, and the positions of each query's rows among them.
//
// Each triple is trained in both directions, (head, r) -> tail and (tail, r + relations) -> head, against
// negatives that all queries of the batch share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/kge/model.hpp"
#include "train/kge/row_index.hpp"
#include "train/kge/triple.hpp"

namespace capstan::kge {

struct StepOptions {
  ModelKind model = ModelKind::complex;
  int dim = 256;  // floats per row of an entity; even for complex numbers
  int negatives = 1024;
  float n3 = 0.1F;  // weight of sum |h|^3 + |r|^3 + |t|^3 (Lacroix et al. 2018); see has_n3()
  std::int64_t entities = 0;
  std::int64_t relations = 0;  // in the graph; the relation table has twice as many rows
  float margin = 0;            // of the self-adversarial loss of RotatE; 0: softmax cross-entropy
};

struct Loss {
  double sum = 0;          // without the penalty
  std::int64_t count = 0;  // number of queries: two per triple
};

/// Keeps its buffers between batches. Used by one thread at a time.
class BatchPlan {
 public:
  /// Throws Error(invalid_argument) for an invalid option.
  explicit BatchPlan(const StepOptions& options);

  /// Draws the negatives and collects the rows. The negatives depend only on `seed` and `batch_number`.
  /// REQUIRES: a non-empty batch with ids in range.
  void draw(std::span<const Triple> batch, std::uint64_t seed, std::uint64_t batch_number);

  /// Sorted and unique; valid until the next `draw`.
  std::span<const std::int64_t> entity_ids() const noexcept { return entity_index_.ids(); }
  std::span<const std::int64_t> relation_ids() const noexcept { return relation_index_.ids(); }

  /// 0 before the first batch.
  std::size_t queries() const noexcept { return relation_occurrences_.size(); }

  /// Index of the unique row for each occurrence of an id in the batch. Entities occur as sources of queries
  /// (heads, then tails), then as negatives; relations occur once in each query.
  std::span<const std::int32_t> entity_positions() const noexcept { return entity_index_.positions(); }
  std::span<const std::int32_t> relation_positions() const noexcept { return relation_index_.positions(); }
  std::span<const std::int32_t> negative_positions() const noexcept {
    return entity_positions().subspan(queries());
  }

  // Positions of a query's entity, answer and relation.
  std::size_t source(std::size_t query) const noexcept {
    return static_cast<std::size_t>(entity_positions()[query]);
  }
  std::size_t answer(std::size_t query) const noexcept {
    const std::size_t half = queries() / 2;
    return source(query < half ? query + half : query - half);
  }
  std::size_t relation(std::size_t query) const noexcept {
    return static_cast<std::size_t>(relation_positions()[query]);
  }

  const StepOptions& options() const noexcept { return options_; }

 private:
  StepOptions options_;
  std::vector<std::int64_t> entity_occurrences_;
  std::vector<std::int64_t> relation_occurrences_;
  RowIndex entity_index_;
  RowIndex relation_index_;
};

/// Correction that is added to the logit of each negative, so that the sampled softmax estimates the full
/// one: log((entities - 1) / negatives).
float logit_correction(const StepOptions& options) noexcept;

}  // namespace capstan::kge

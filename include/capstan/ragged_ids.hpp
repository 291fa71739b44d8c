// ragged_ids.hpp -- a batch of rows with any number of ids each, for embedding_lookup_sparse.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/export.hpp"

namespace capstan {

/// How the embeddings e of one row's ids, with weights w, become one. A divisor of 0 gives 0.
enum class Combiner : std::uint8_t {
  mean,   ///< sum(w e) / sum(w)
  sum,    ///< sum(w e)
  sqrtn,  ///< sum(w e) / sqrt(sum(w^2))
};

/// Row r has ids[row_splits[r]] up to, not including, ids[row_splits[r + 1]]; it may have none.
struct CAPSTAN_API RaggedIds {
  std::vector<std::int64_t> row_splits = {0};
  std::vector<std::int64_t> ids = {};
  /// One for each id; none at all: all are 1.
  std::vector<double> weights = {};
  /// Sizes whose product is rows(), when rows stand for more axes than one; none: {rows()}.
  Shape batch = {};

  /// `{{0, 3}, {4}, {}, {1}}`. Weights are given alike or not at all.
  static RaggedIds from_rows(const std::vector<std::vector<std::int64_t>>& ids,
                             const std::vector<std::vector<double>>& weights = {});
  /// Id i is of row row_of[i], in [0, rows). Ids of one row keep their order; rows may come in any.
  static RaggedIds from_pairs(std::span<const std::int64_t> row_of, std::span<const std::int64_t> ids,
                              std::int64_t rows, std::span<const double> weights = {});
  /// As a tf.SparseTensor has them: `indices` of shape (ids, axes), the last axis of `dense_shape` is what is
  /// combined over, those before are the batch.
  static RaggedIds from_sparse(const Array<std::int64_t>& indices, std::span<const std::int64_t> ids,
                               const Shape& dense_shape, std::span<const double> weights = {});

  std::int64_t rows() const noexcept { return static_cast<std::int64_t>(row_splits.size()) - 1; }
  Shape batch_shape() const { return batch.empty() ? Shape{rows()} : batch; }

  /// Throws Error(invalid_argument) when splits do not begin at 0, fall, or do not end at ids.size(), when
  /// weights are neither none nor one an id, and when the batch has not rows() places. Lookups call it.
  void check() const;

  /// Without ids below 0 and ids whose weight is not above 0; a row that then has none gets `default_id` with
  /// weight 1, if one is given.
  RaggedIds pruned(std::optional<std::int64_t> default_id = {}) const;

  /// What each row's weighted sum is divided by; 0 where that would be a division by 0, or the row is empty.
  /// Throws Error(invalid_argument) for a value that is no combiner.
  std::vector<double> divisors(Combiner combiner) const;

  friend bool operator==(const RaggedIds&, const RaggedIds&) = default;
};

}  // namespace capstan

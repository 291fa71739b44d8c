// ranking.hpp -- filtered ranks of the correct answers among all entities, the metric of link prediction.
//
// The entity table is processed block by block, so no process needs all of it in memory:
//
//   Ranker ranker(options, true_answers);
//   ranker.plan(slice);                          // some test triples; each is ranked in both directions
//   // look up ranker.entity_ids() and ranker.relation_ids()
//   ranker.begin(entity_rows, relation_rows);
//   // for each block of the table:
//   ranker.add_block(first_id, rows);
//   total.merge(ranker.finish());
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/kge/aligned.hpp"
#include "train/kge/rank_metrics.hpp"
#include "train/kge/row_index.hpp"
#include "train/kge/triple.hpp"
#include "train/kge/true_answers.hpp"

namespace capstan::kge {

/// The rank of an answer is 1 + better + equal / 2. These count the other entities with a better or an equal
/// score; known answers do not count. A NaN score counts as better than the answer's, so the answers of a
/// model full of NaN get the last rank. Used by one thread at a time.
class Ranker {
 public:
  /// `true_answers` must outlive the ranker.
  Ranker(const RankerOptions& options, const TrueAnswers& true_answers);

  /// Prepares two queries for each triple, one for its tail and one for its head, and sets the ids below.
  /// REQUIRES: `slice` is not empty.
  void plan(std::span<const Triple> slice);

  /// Sorted and unique; valid until the next `plan`.
  std::span<const std::int64_t> entity_ids() const noexcept { return entity_index_.ids(); }
  std::span<const std::int64_t> relation_ids() const noexcept { return relation_index_.ids(); }

  /// The rows are in the order of the ids: `dim` floats for an entity, relation_width(model, dim) for a
  /// relation.
  void begin(std::span<const float> entity_rows, std::span<const float> relation_rows);

  /// Adds the rows of the entities first_id, first_id + 1, ... Each entity must be added exactly once; blocks
  /// may come in any order. Blocks of 1,000 rows or more are fastest.
  void add_block(std::int64_t first_id, std::span<const float> rows);

  /// REQUIRES: every entity was added since begin().
  Metrics finish();

 private:
  /// A query, and the counts from which finish() computes the rank of its answer.
  struct Query {
    std::int32_t answer;
    std::span<const std::int32_t> known;  // known answers, sorted; may include `answer`
    double answer_score = 0;
    float norm = 0;
    std::int64_t better = 0;
    std::int64_t equal = 0;
  };

  /// Adds up to kChunkRows rows of a block.
  void add_chunk(std::int64_t first_id, const float* rows, std::size_t count);
  void score_chunk(std::size_t first_query, std::size_t block, const float* rows, std::size_t count);
  double rounding_margin(const Query& query, float largest_norm) const noexcept;
  void count_chunk(Query& query, const float* query_row, float* scores, std::int64_t first_id,
                   const float* rows, std::size_t count, float largest_norm) const;
  double exact_score(const float* query, const float* row) const noexcept;

  RankerOptions options_;
  Comparison comparison_;
  std::size_t dim_;
  std::size_t relation_width_;
  const TrueAnswers* true_answers_;
  RowIndex entity_index_;
  RowIndex relation_index_;
  std::vector<std::int64_t> entity_occurrences_;
  std::vector<std::int64_t> relation_occurrences_;
  std::vector<Query> queries_;
  std::int64_t entities_seen_ = 0;  // entities added since begin()

  AlignedFloats query_rows_;
  AlignedFloats scores_;
  AlignedFloats negated_squares_;  // -|c|^2 of each row c of a chunk; read only for distances
};

}  // namespace capstan::kge

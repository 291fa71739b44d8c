// device_ranking.hpp -- Ranker by a GPU: filtered ranks of right answers among all entities, from a table in
// its memory.
//
//   DeviceRanker ranker(options, true_answers, stream);
//   give the stream what fills ranker.make_table()   // once for an evaluation
//   ranker.measure_table();
//   ranker.plan(slice);                              // some test triples; both directions of each are ranked
//   rows of ranker.relation_ids() into the GPU's memory
//   total.merge(ranker.rank(rows));
//   ranker.drop_table();
//
// Scores are products of matrices in float. What is closer to the answer's score than they round is decided
// in double, by the host's sums in the host's order, so that ranks are the host's where its cores multiply
// and add at once (x86-64: AVX2). Without that ComplEx's queries may differ in their last bits, and ranks
// with them where two scores are so close.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/gpu.hpp"
#include "train/kge/rank_metrics.hpp"
#include "train/kge/row_index.hpp"
#include "train/kge/triple.hpp"
#include "train/kge/true_answers.hpp"

namespace capstan::kge {

struct RankCounts;
struct RankMemory;
struct RightAnswer;
struct Threshold;

/// Used by one thread at a time, which waits in rank(), drop_table(), and where memory grows.
class DeviceRanker {
 public:
  /// Scores that are in memory at once: 256 MiB of them, or half of what the table leaves free.
  static constexpr std::size_t kMostScores = std::size_t{1} << 26;

  /// `true_answers` and the stream outlive it.
  DeviceRanker(const RankerOptions& options, const TrueAnswers& true_answers, const gpu::Stream& stream,
               std::size_t most_scores = kMostScores);
  ~DeviceRanker();

  /// Room for all entities in their order, `dim` floats each. Throws Error(resource_exhausted) that names the
  /// table and the GPU, also where what is left would be less than a 16th of the GPU's memory (256 MiB at
  /// most), for other workers, and ps that save.
  float* make_table();
  bool has_table() const noexcept { return table_.size() > 0; }
  /// Of what the stream has been given to fill it.
  void measure_table();
  void drop_table();

  /// REQUIRES: the slice is not empty.
  void plan(std::span<const Triple> slice);
  /// Sorted and unique; valid until the next `plan`.
  std::span<const std::int64_t> relation_ids() const noexcept { return relation_index_.ids(); }

  /// The rows, in the GPU's memory, are in the order of the ids. Waits. REQUIRES: a table that was measured.
  /// Throws Error: resource_exhausted; invalid_argument for a slice that its kernels cannot count.
  Metrics rank(const float* relation_rows);
  /// Of the last `rank`: of the tails of the slice's triples, then of their heads.
  std::vector<double> ranks() const;

 private:
  RankMemory make_room(const float* relation_rows);
  void score_blocks(const RankMemory& memory);

  RankerOptions options_;
  std::uint32_t dim_;
  const TrueAnswers* true_answers_;
  const gpu::Stream& stream_;
  std::size_t most_scores_, scores_now_ = 0;

  RowIndex relation_index_;
  std::vector<std::int64_t> relation_uses_;
  std::vector<std::uint32_t> words_;         // of queries: entities, places of relations, answers
  std::vector<RightAnswer> right_;           // in the order of queries
  std::vector<std::uint32_t> right_begins_;  // of queries, and the end
  std::vector<RankCounts> counts_;

  gpu::Values<float> table_, squares_, query_rows_, scores_;
  gpu::Values<std::uint32_t> largest_square_, device_words_;
  gpu::Values<RightAnswer> device_right_;
  gpu::Values<Threshold> thresholds_;
  gpu::Values<RankCounts> device_counts_;
};

}  // namespace capstan::kge

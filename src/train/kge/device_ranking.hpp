// device_ranking.hpp -- Ranker on a GPU: filtered ranks of correct answers among all entities, from a table
// in its memory.
//
//   DeviceRanker ranker(options, true_answers, stream);
//   // enqueue the copy of the entity table to ranker.make_table(), once per evaluation
//   ranker.compute_norms();
//   ranker.plan(slice);                              // some test triples; each is ranked in both directions
//   // copy the rows of ranker.relation_ids() to the GPU's memory
//   total.merge(ranker.rank(rows));
//   ranker.drop_table();
//
// Scores are matrix products in float. Scores within rounding error of the answer's are recomputed in double,
// with the host's sums in the host's order, so that ranks equal those of a host with fused multiply-add
// (x86-64: AVX2). On a host without it, the last bits of ComplEx's queries may differ, and so may the ranks
// of such close scores.
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
struct KnownAnswer;
struct Threshold;

/// Used by one thread at a time. Blocks in rank(), in drop_table() and where memory grows.
class DeviceRanker {
 public:
  /// Maximum number of scores in memory: 512 MiB. Half of the memory that the table leaves is a limit, too.
  static constexpr std::size_t kMaxScores = std::size_t{1} << 27;

  /// `true_answers` and `stream` must outlive it.
  DeviceRanker(const RankerOptions& options, const TrueAnswers& true_answers, const gpu::Stream& stream,
               std::size_t max_scores = kMaxScores);
  ~DeviceRanker();

  /// Allocates the table of all entities, in their order, `dim` floats each. It must leave 1/16 of the GPU's
  /// memory (at most 256 MiB) to other workers and to ps that save. Throws Error(resource_exhausted), with
  /// the table's size and the GPU, if it does not fit.
  float* make_table();
  bool has_table() const noexcept { return table_.size() > 0; }
  /// Enqueues the computation of the norms of the rows. REQUIRES: the copies that fill the table are enqueued
  /// on the stream.
  void compute_norms();
  void drop_table();

  /// REQUIRES: `slice` is not empty.
  void plan(std::span<const Triple> slice);
  /// Sorted and unique; valid until the next `plan`.
  std::span<const std::int64_t> relation_ids() const noexcept { return relation_index_.ids(); }

  /// Ranks the slice with `relation_rows`, in the GPU's memory, in the order of relation_ids(). Blocks.
  /// REQUIRES: compute_norms() was called. Throws Error: resource_exhausted; invalid_argument for a slice too
  /// large for the kernels.
  Metrics rank(const float* relation_rows);
  /// Ranks of the last rank(): of the tails of the slice's triples, then of their heads.
  std::vector<double> ranks() const;

 private:
  RankMemory reserve_buffers(const float* relation_rows);
  void score_blocks(const RankMemory& memory);

  RankerOptions options_;
  std::uint32_t dim_;
  const TrueAnswers* true_answers_;
  const gpu::Stream& stream_;
  std::size_t max_scores_, score_capacity_ = 0;

  RowIndex relation_index_;
  std::vector<std::int64_t> relation_occurrences_;
  std::vector<std::uint32_t> words_;         // entities of all queries, positions of relations, answers
  std::vector<KnownAnswer> known_;           // in the order of queries
  std::vector<std::uint32_t> known_begins_;  // index in known_ by query, and the end
  std::vector<RankCounts> counts_;

  gpu::Values<float> table_, squares_, query_rows_, scores_;
  gpu::Values<std::uint32_t> largest_square_, device_words_;
  gpu::Values<KnownAnswer> device_known_;
  gpu::Values<Threshold> thresholds_;
  gpu::Values<RankCounts> device_counts_;
};

}  // namespace capstan::kge

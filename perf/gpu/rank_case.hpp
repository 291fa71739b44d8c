// rank_case.hpp -- evaluation of `capstan train kge` on a GPU with the table in the GPU's memory, for
// perf_gpu.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"
#include "tests/train/plain_kge_ranking.hpp"
#include "train/kge/device_ranking.hpp"

namespace capstan::perf {

/// A model with its default options, on a graph of the size of WN18RR; with stand-ins a small one. A call
/// ranks both directions of 1,024 triples, as one closure does.
class RankCase {
 public:
  RankCase(const gpu::Stream& stream, kge::ModelKind model);

  std::string name() const;
  /// Returns true if the ranks of some triples equal those of a plain implementation.
  bool is_correct();
  void rank() { (void)ranker_.rank(relations_.data()); }
  /// The bound: only the matrix products.
  void multiply();
  /// Number of pairs of a query and an entity per call.
  double pairs() const noexcept;

 private:
  const gpu::Stream& stream_;
  kge::PlainTables tables_;
  std::vector<kge::Triple> known_, test_;
  kge::TrueAnswers answers_;
  kge::DeviceRanker ranker_;
  const float* table_;
  gpu::Values<float> relations_, queries_, scores_;
};

}  // namespace capstan::perf

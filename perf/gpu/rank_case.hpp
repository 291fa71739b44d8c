// rank_case.hpp -- evaluation of `capstan train kge` on a GPU with its table there already, for perf_gpu.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"
#include "tests/train/plain_kge_ranking.hpp"
#include "train/kge/device_ranking.hpp"

namespace capstan::perf {

/// A model with its own defaults, on a graph of WN18RR's size; with stand-ins a small one. A call ranks both
/// directions of 1,024 triples, as one closure does.
class RankCase {
 public:
  RankCase(const gpu::Stream& stream, kge::ModelKind model);

  std::string name() const;
  /// Ranks of some triples, against their definition.
  bool is_right();
  void rank() { (void)ranker_.rank(relations_.data()); }
  /// The bound: its products of matrices alone.
  void multiply();
  /// A query and an entity, in a call.
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

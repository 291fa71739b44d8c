// evaluator.hpp -- ranking of held-out triples on a worker, on its CPU cores or a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/kge/ranking.hpp"
#include "train/kge/table.hpp"
#include "train/kge/triple.hpp"
#include "train/kge/true_answers.hpp"

namespace capstan::kge {

/// Ranks on a GPU. Pulls the entity table into its memory once per evaluation. REQUIRES: float32 tables.
class GpuEvaluator {
 public:
  virtual ~GpuEvaluator() = default;
  /// Throws Error(resource_exhausted) if the GPU's memory does not suffice.
  virtual Metrics rank(std::span<const Triple> triples, std::int64_t evaluation, const Table& entities,
                       const Table& relations) = 0;
  /// Frees the table.
  virtual void end() = 0;
};
std::unique_ptr<GpuEvaluator> make_gpu_evaluator(const RankerOptions& options, const TrueAnswers& answers,
                                                 int device);

/// Filter and ranker of a worker. Keeps its buffers between calls; used by one thread at a time.
class Evaluator {
 public:
  /// With `device`, ranks on that GPU of this process.
  Evaluator(TrueAnswers answers, const RankerOptions& options, std::optional<int> device);

  /// Ranks a slice by exact rows, also if messages are rounded. All slices of an evaluation pass the same
  /// number, and no push is applied between them. If the GPU's memory does not suffice, the CPU ranks
  /// instead, with one warning.
  Metrics rank(std::span<const Triple> triples, std::int64_t evaluation, const Table& entities,
               const Table& relations);
  /// Ends an evaluation: frees its memory on the GPU. Returns false without a GPU.
  bool end();

 private:
  Metrics rank_on_host(std::span<const Triple> triples, const Table& entities, const Table& relations);

  TrueAnswers answers_;
  Ranker ranker_;
  std::vector<float> block_;
  std::unique_ptr<GpuEvaluator> gpu_;
  std::optional<std::int64_t> cpu_evaluation_;  // the evaluation for which the GPU's memory did not suffice
  bool warned_ = false;
};

/// Called on a worker, where it reads the graph. Throws Error(failed_precondition), with the reason, if
/// `on_gpu` is set and there is no GPU.
std::unique_ptr<Evaluator> make_evaluator(std::string data, RankerOptions options, bool on_gpu);

}  // namespace capstan::kge

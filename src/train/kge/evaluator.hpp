// evaluator.hpp -- what ranks held-out triples on a worker: its cores, or a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capstan/variable.hpp"
#include "train/kge/ranking.hpp"
#include "train/kge/triple.hpp"
#include "train/kge/true_answers.hpp"

namespace capstan::kge {

/// By a GPU: the table of the entities is pulled into its memory once for an evaluation.
class GpuEvaluator {
 public:
  virtual ~GpuEvaluator() = default;
  /// Throws Error: resource_exhausted when the GPU has no room.
  virtual Metrics rank(std::span<const Triple> triples, std::int64_t evaluation,
                       const Variable<float>& entities, const Variable<float>& relations) = 0;
  /// Gives the table's memory back.
  virtual void end() = 0;
};
std::unique_ptr<GpuEvaluator> make_gpu_evaluator(const RankerOptions& options, const TrueAnswers& answers,
                                                 int device);

/// A worker's filter and ranker. Keeps its buffers; used by one thread at a time.
class Evaluator {
 public:
  /// With `device`, by that GPU of this process.
  Evaluator(TrueAnswers answers, const RankerOptions& options, std::optional<int> device);

  /// Slices of one evaluation have the same number: nothing is pushed to the variables meanwhile. Where the
  /// GPU has no room the host's cores rank, which is a warning, once.
  Metrics rank(std::span<const Triple> triples, std::int64_t evaluation, const Variable<float>& entities,
               const Variable<float>& relations);
  /// After an evaluation: gives back what it has taken of a GPU's memory; false without a GPU.
  bool end();

 private:
  Metrics rank_here(std::span<const Triple> triples, const Variable<float>& entities,
                    const Variable<float>& relations);

  TrueAnswers answers_;
  Ranker ranker_;
  std::vector<float> block_;
  std::unique_ptr<GpuEvaluator> gpu_;
  std::optional<std::int64_t> without_gpu_;  // the evaluation that it had no room for
  bool warned_ = false;
};

/// On a worker; the graph is read there. Throws Error, failed_precondition with the reason where `on_gpu`
/// finds no GPU.
std::unique_ptr<Evaluator> make_evaluator(std::string data, RankerOptions options, bool on_gpu);

}  // namespace capstan::kge

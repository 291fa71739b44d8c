// device_softmax.hpp -- losses of queries and weights of their candidates by blocks of a GPU's threads
// (blocks.cuh); what kernels.hpp does on the host.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/both.hpp"
#include "gpu/reduction.hpp"
#include "train/kge/device_bodies.hpp"
#include "train/kge/kernels.hpp"

namespace capstan::kge {

using gpu::Larger;
using gpu::Reduction;
using gpu::Sum;

/// One block a query: its scores, or the squares of its distances, become weights (see softmax_scores and
/// softmax_distances in kernels.hpp). Negatives that are its answer get none.
template <ModelKind kModel>
struct SoftmaxBody {
  static constexpr std::uint32_t kThreads = 256;
  static constexpr bool kIsDistance = kModel == ModelKind::transe;
  /// Far below any real score, and its exponential is exactly 0.
  static constexpr float kMasked = -1e30F;
  /// Distances below are rounding errors.
  static constexpr float kSmallest = 1e-6F;

  struct Shared {
    Reduction<float, kThreads> reduction;
  };
  struct Mine {
    float positive;  // the answer's score or distance
    float most;      // of the logits
    float sum;       // of the negatives' exponentials
    float weights;   // their sum
  };

  StepMemory memory;
  std::uint32_t first;  // query of the block of scores
  float correction;

  template <class B>
  CAPSTAN_BOTH void operator()(const B& block, std::uint32_t number) const {
    const std::uint32_t query = first + number, count = memory.lists.negatives;
    const std::uint32_t answer_use = memory.answer_use(query);
    float* const scores = memory.scores + std::uint64_t{number} * count;
    using Floats = Reduction<float, kThreads>;

    block.each([&](std::uint32_t thread, Mine& mine, Shared&) {
      mine.positive = positive_part(thread, query, memory.entity_of_use(answer_use));
      mine.most = find_logits(thread, scores, memory.lists.entity_places[answer_use]);
    });
    Floats::template run<Sum, Mine, Shared>(block, &Mine::positive);
    Floats::template run<Larger, Mine, Shared>(block, &Mine::most);
    block.each([&](std::uint32_t thread, Mine& mine, Shared&) {
      if constexpr (kIsDistance) mine.positive = Larger::of(std::sqrt(mine.positive), kSmallest);
      mine.most = Larger::of(logit(mine.positive), mine.most + correction);
      mine.sum = 0;
      for (std::uint32_t j = thread; j < count; j += kThreads) {
        const float score = scores[j];
        const float weight =
            std::exp(score * (kIsDistance ? kTransETemperature : 1.0F) + correction - mine.most);
        scores[j] = kIsDistance ? weight / score : weight;  // the score is the distance below 0
        mine.sum += weight;
      }
    });
    Floats::template run<Sum, Mine, Shared>(block, &Mine::sum);
    block.each([&](std::uint32_t thread, Mine& mine, Shared&) {
      const float total = mine.sum + std::exp(logit(mine.positive) - mine.most);
      const float factor = kIsDistance ? -kTransETemperature / total : 1 / total;
      mine.weights = 0;
      for (std::uint32_t j = thread; j < count; j += kThreads) {
        scores[j] *= factor;
        mine.weights += scores[j];
      }
    });
    if constexpr (kIsDistance) Floats::template run<Sum, Mine, Shared>(block, &Mine::weights);
    block.each([&](std::uint32_t thread, Mine& mine, Shared&) {
      if (thread == 0) finish(query, mine);
    });
  }

 private:
  CAPSTAN_BOTH static float logit(float positive) {
    return kIsDistance ? -kTransETemperature * positive : positive;
  }
  /// Of the answer's score, or of the square of its distance.
  CAPSTAN_BOTH float positive_part(std::uint32_t thread, std::uint32_t query, const float* answer) const {
    const float* const row = memory.queries + std::uint64_t{query} * memory.stride;
    float sum = 0;
    for (std::uint32_t i = thread; i < memory.dim; i += kThreads) {
      const float difference = row[i] - answer[i];
      sum += kIsDistance ? difference * difference : row[i] * answer[i];
    }
    return sum;
  }
  /// Squares of distances become distances below 0, and masks are put. The largest logit, uncorrected.
  CAPSTAN_BOTH float find_logits(std::uint32_t thread, float* scores, std::uint32_t answer) const {
    const std::uint32_t* const places = memory.lists.entity_places + memory.lists.queries;
    float most = kMasked;
    for (std::uint32_t j = thread; j < memory.lists.negatives; j += kThreads) {
      float score = scores[j];
      if constexpr (kIsDistance) score = -std::sqrt(Larger::of(score, kSmallest * kSmallest));
      if (places[j] == answer) score = kMasked;
      scores[j] = score;
      most = Larger::of(most, kIsDistance ? kTransETemperature * score : score);
    }
    return most;
  }
  CAPSTAN_BOTH void finish(std::uint32_t query, const Mine& mine) const {
    const float total = mine.sum + std::exp(logit(mine.positive) - mine.most);
    const float share = mine.sum / total;  // of the negatives
    const float weight = kIsDistance ? -share * kTransETemperature / mine.positive : -share;
    memory.losses[query] = std::log(total) + mine.most - logit(mine.positive);
    memory.positive_weights[query] = weight;
    if constexpr (kIsDistance) memory.weight_sums[query] = mine.weights + weight;
  }
};

}  // namespace capstan::kge

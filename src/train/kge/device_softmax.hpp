// device_softmax.hpp -- losses of queries and weights of their candidates on a GPU (blocks.cuh), as
// kernels.hpp computes them on the host.
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

/// Replaces the scores of a query, or its squared distances, by weights (see softmax_scores and
/// softmax_distances in kernels.hpp). Negatives that equal the answer get weight 0. One block per query.
template <ModelKind kModel>
struct SoftmaxBody {
  static constexpr std::uint32_t kThreads = 256;
  static constexpr bool kIsDistance = kModel == ModelKind::transe;
  /// Below any real score; its exponential is exactly 0.
  static constexpr float kMasked = -1e30F;
  /// Smaller distances are rounding errors.
  static constexpr float kSmallest = 1e-6F;

  struct Shared {
    Reduction<float, kThreads> reduction;
  };
  struct ThreadState {
    float positive;   // the answer's score or distance
    float max_logit;  // over the candidates
    float sum;        // sum of the exponentials of the negatives
    float weights;    // sum of the negatives' weights
  };

  StepMemory memory;
  std::uint32_t first;  // first query of the block of scores
  float correction;

  template <class B>
  CAPSTAN_BOTH void operator()(const B& block, std::uint32_t number) const {
    const std::uint32_t query = first + number, count = memory.lists.negatives;
    const std::uint32_t answer_use = memory.answer_use(query);
    float* const scores = memory.scores + std::uint64_t{number} * count;
    using Floats = Reduction<float, kThreads>;

    block.each([&](std::uint32_t thread, ThreadState& state, Shared&) {
      state.positive = positive_part(thread, query, memory.entity_of_use(answer_use));
      state.max_logit = compute_logits(thread, scores, memory.lists.entity_positions[answer_use]);
    });
    Floats::template run<Sum, ThreadState, Shared>(block, &ThreadState::positive);
    Floats::template run<Larger, ThreadState, Shared>(block, &ThreadState::max_logit);
    block.each([&](std::uint32_t thread, ThreadState& state, Shared&) {
      if constexpr (kIsDistance) state.positive = Larger::of(std::sqrt(state.positive), kSmallest);
      state.max_logit = Larger::of(logit(state.positive), state.max_logit + correction);
      state.sum = 0;
      for (std::uint32_t j = thread; j < count; j += kThreads) {
        const float score = scores[j];
        const float weight =
            std::exp(score * (kIsDistance ? kTransETemperature : 1.0F) + correction - state.max_logit);
        scores[j] = kIsDistance ? weight / score : weight;  // the score is the negative distance
        state.sum += weight;
      }
    });
    Floats::template run<Sum, ThreadState, Shared>(block, &ThreadState::sum);
    block.each([&](std::uint32_t thread, ThreadState& state, Shared&) {
      const float total = state.sum + std::exp(logit(state.positive) - state.max_logit);
      const float factor = kIsDistance ? -kTransETemperature / total : 1 / total;
      state.weights = 0;
      for (std::uint32_t j = thread; j < count; j += kThreads) {
        scores[j] *= factor;
        state.weights += scores[j];
      }
    });
    if constexpr (kIsDistance) Floats::template run<Sum, ThreadState, Shared>(block, &ThreadState::weights);
    block.each([&](std::uint32_t thread, ThreadState& state, Shared&) {
      if (thread == 0) finish(query, state);
    });
  }

 private:
  CAPSTAN_BOTH static float logit(float positive) {
    return kIsDistance ? -kTransETemperature * positive : positive;
  }
  /// Partial sum of the answer's score, or of its squared distance.
  CAPSTAN_BOTH float positive_part(std::uint32_t thread, std::uint32_t query, const float* answer) const {
    const float* const row = memory.queries + std::uint64_t{query} * memory.stride;
    float sum = 0;
    for (std::uint32_t i = thread; i < memory.dim; i += kThreads) {
      const float difference = row[i] - answer[i];
      sum += kIsDistance ? difference * difference : row[i] * answer[i];
    }
    return sum;
  }
  /// Replaces squared distances by negative distances, and masks negatives that equal the answer. Returns the
  /// largest logit, uncorrected.
  CAPSTAN_BOTH float compute_logits(std::uint32_t thread, float* scores, std::uint32_t answer) const {
    const std::uint32_t* const positions = memory.lists.entity_positions + memory.lists.queries;
    float max_logit = kMasked;
    for (std::uint32_t j = thread; j < memory.lists.negatives; j += kThreads) {
      float score = scores[j];
      if constexpr (kIsDistance) score = -std::sqrt(Larger::of(score, kSmallest * kSmallest));
      if (positions[j] == answer) score = kMasked;
      scores[j] = score;
      max_logit = Larger::of(max_logit, kIsDistance ? kTransETemperature * score : score);
    }
    return max_logit;
  }
  CAPSTAN_BOTH void finish(std::uint32_t query, const ThreadState& state) const {
    const float total = state.sum + std::exp(logit(state.positive) - state.max_logit);
    const float share = state.sum / total;  // probability of all negatives together
    const float weight = kIsDistance ? -share * kTransETemperature / state.positive : -share;
    memory.losses[query] = std::log(total) + state.max_logit - logit(state.positive);
    memory.positive_weights[query] = weight;
    if constexpr (kIsDistance) memory.weight_sums[query] = state.weights + weight;
  }
};

}  // namespace capstan::kge

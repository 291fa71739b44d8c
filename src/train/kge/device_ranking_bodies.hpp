// device_ranking_bodies.hpp -- work of GPU threads in kge::DeviceRanker; see row_bodies.hpp and blocks.cuh
// for the calling convention. Ranks, ties and close scores follow Ranker (ranking.cpp).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gpu/both.hpp"
#include "gpu/divider.hpp"
#include "gpu/reduction.hpp"
#include "train/kge/device_bodies.hpp"
#include "train/kge/model.hpp"

namespace capstan::kge {

/// A correct answer of a query: its own or another known one.
struct KnownAnswer {
  std::uint32_t query, entity;
};

/// Numbers of other entities that score above the answer of a query, and equal to it.
struct RankCounts {
  std::uint32_t better, equal;
};

/// Exact score of the answer, and the interval in which scores are recomputed exactly.
struct Threshold {
  double answer;
  float low, high;
};

/// Inputs, outputs and scratch buffers of the bodies of a ranking.
struct RankMemory {
  std::uint32_t dim, part_size;          // part_size: dim, or half of it for complex numbers
  const float* entities;                 // [entities, dim]
  float* squares;                        // [entities], squared norms of the rows
  std::uint32_t* largest_square;         // as bits, which have the same order as non-negative floats
  const float* relations;                // [relations of the plan, dim]
  const std::uint32_t* query_entities;   // [queries], as are the arrays below
  const std::uint32_t* query_relations;  // positions in `relations`
  const std::uint32_t* answers;
  float* queries;  // [queries, dim]
  Threshold* thresholds;
  RankCounts* counts;
  float* scores;  // [block of queries, block of entities]
};

/// Score of entities that are excluded from the rank.
inline constexpr float kMaskedScore = -std::numeric_limits<float>::infinity();

/// Computes the squared norm of each row, and the largest of all. One block per row.
struct SquareBody {
  static constexpr std::uint32_t kThreads = 64;
  struct Shared {
    gpu::Reduction<double, kThreads> reduction;
  };
  struct ThreadState {
    double sum;
  };
  RankMemory memory;

  template <class B>
  CAPSTAN_BOTH void operator()(const B& block, std::uint32_t entity) const {
    const float* const row = memory.entities + std::uint64_t{entity} * memory.dim;
    block.each([&](std::uint32_t thread, ThreadState& state, Shared&) {
      state.sum = 0;
      for (std::uint32_t i = thread; i < memory.dim; i += kThreads) {
        state.sum += static_cast<double>(row[i]) * static_cast<double>(row[i]);
      }
    });
    gpu::Reduction<double, kThreads>::run<gpu::Sum, ThreadState, Shared>(block, &ThreadState::sum);
    block.each([&](std::uint32_t thread, ThreadState& state, Shared&) {
      if (thread != 0) return;
      const auto square = static_cast<float>(state.sum);
      memory.squares[entity] = square;
      if (square >= 0) gpu::atomic_max(memory.largest_square, std::bit_cast<std::uint32_t>(square));
    });
  }
};

/// Computes the queries. One number per unit.
template <ModelKind kModel, int kWidth>
struct RankQueryBody {
  using U = Unit<kModel, kWidth>;
  RankMemory memory;
  Divider units;

  CAPSTAN_BOTH const float* find(std::uint32_t number) const {
    return memory.entities + std::uint64_t{memory.query_entities[units(number).quotient]} * memory.dim;
  }
  CAPSTAN_BOTH U load(std::uint32_t number, const float* entity) const {
    const auto [query, unit] = units(number);
    const float* const relation =
        memory.relations + std::uint64_t{memory.query_relations[query]} * memory.dim;
    return query_of<kModel, kWidth>(U::load(entity, unit, memory.part_size),
                                    U::load(relation, unit, memory.part_size));
  }
  CAPSTAN_BOTH void store(std::uint32_t number, const float*, const U& made) const {
    const auto [query, unit] = units(number);
    made.store(memory.queries + std::uint64_t{query} * memory.dim, unit, memory.part_size);
  }
};

/// Calls f(a[i], b[i]) for every i below `dim`, in order. On a GPU, all loads of a batch are in flight at the
/// same time.
template <class F>
CAPSTAN_BOTH void for_each_pair(const float* a, const float* b, std::uint32_t dim, const F& f) {
  constexpr std::uint32_t kBatch = 32;
  std::uint32_t i = 0;
  for (; i + kBatch <= dim; i += kBatch) {
    float from_a[kBatch], from_b[kBatch];
    CAPSTAN_UNROLL
    for (std::uint32_t k = 0; k < kBatch; ++k) {
      from_a[k] = a[i + k];
      from_b[k] = b[i + k];
    }
    CAPSTAN_UNROLL
    for (std::uint32_t k = 0; k < kBatch; ++k) f(from_a[k], from_b[k]);
  }
  for (; i < dim; ++i) f(a[i], b[i]);
}

/// Sums in the order of Ranker::exact_score, with the same bits: a product of two floats is exact in double,
/// so fused and separate rounding agree.
template <ModelKind kModel>
CAPSTAN_BOTH double exact_score(const float* query, const float* row, std::uint32_t dim) {
  double product = 0, square = 0;
  for_each_pair(query, row, dim, [&](float q, float entity) {
    const auto c = static_cast<double>(entity);
    product += static_cast<double>(q) * c;
    if (kModel == ModelKind::transe) square += c * c;
  });
  return kModel == ModelKind::transe ? 2 * product - square : product;
}

/// Computes the thresholds and resets the counts. One number per query.
template <ModelKind kModel>
struct ThresholdBody {
  RankMemory memory;

  CAPSTAN_BOTH const float* find(std::uint32_t query) const {
    return memory.queries + std::uint64_t{query} * memory.dim;
  }
  CAPSTAN_BOTH Threshold load(std::uint32_t query, const float* row) const {
    constexpr float kLargest = std::numeric_limits<float>::max();
    const float* const answer = memory.entities + std::uint64_t{memory.answers[query]} * memory.dim;
    Threshold threshold{exact_score<kModel>(row, answer, memory.dim), -kLargest, -kLargest};
    // A NaN answer ranks last: every entity counts as better.
    if (!(threshold.answer == threshold.answer)) return threshold;
    const double bound = margin(row);
    threshold.low = to_float(threshold.answer - bound);
    threshold.high = to_float(threshold.answer + bound);
    return threshold;
  }
  CAPSTAN_BOTH void store(std::uint32_t query, const float*, const Threshold& threshold) const {
    memory.thresholds[query] = threshold;
    memory.counts[query] = {0, 0};
  }

 private:
  /// Twice the classical error bound of a sum of products in any order.
  CAPSTAN_BOTH double margin(const float* query) const {
    double square = 0;
    for_each_pair(query, query, memory.dim,
                  [&](float a, float b) { square += static_cast<double>(a) * static_cast<double>(b); });
    const auto largest_square = static_cast<double>(std::bit_cast<float>(*memory.largest_square));
    const double product = std::sqrt(square) * std::sqrt(largest_square);
    const double rounding = 2 * (static_cast<double>(memory.dim) + 8) * 0x1p-24;
    const double bound = rounding * (kModel == ModelKind::transe ? 2 * product + largest_square : product);
    return bound == bound ? bound : std::numeric_limits<double>::infinity();
  }
  CAPSTAN_BOTH static float to_float(double value) {
    constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
    return static_cast<float>(value < -kLargest ? -kLargest : value > kLargest ? kLargest : value);
  }
};

/// Masks the scores of correct answers. One number per answer.
struct MaskAnswerBody {
  const KnownAnswer* known;
  std::uint32_t first_query, first_entity, columns;
  float* scores;  // [queries from first_query, columns entities from first_entity]

  CAPSTAN_BOTH KnownAnswer find(std::uint32_t number) const { return known[number]; }
  CAPSTAN_BOTH float load(std::uint32_t, const KnownAnswer&) const { return kMaskedScore; }
  CAPSTAN_BOTH void store(std::uint32_t, const KnownAnswer& at, float score) const {
    const std::uint32_t column =
        at.entity - first_entity;  // for an entity below first_entity, wraps around to at least columns
    if (column < columns) scores[std::uint64_t{at.query - first_query} * columns + column] = score;
  }
};

/// Counts a block of entities for a query. One block per query. Each thread has kTogether loads in flight.
/// Scores between the thresholds, about 10 of 40,000, are recomputed by the thread that reads them.
template <ModelKind kModel>
struct CountBody {
  static constexpr std::uint32_t kThreads = 256, kTogether = 8;
  using Counts = gpu::Reduction<std::uint32_t, kThreads>;
  struct Shared {
    Counts reduction;
  };
  struct ThreadState {
    std::uint32_t better, equal;
  };
  RankMemory memory;
  std::uint32_t first_query, first_entity, columns;

  template <class B>
  CAPSTAN_BOTH void operator()(const B& block, std::uint32_t number) const {
    const std::uint32_t query = first_query + number;
    block.each([&](std::uint32_t thread, ThreadState& state, Shared&) {
      const Threshold threshold = memory.thresholds[query];
      state = {0, 0};
      const float* const scores = memory.scores + std::uint64_t{number} * columns;
      for (std::uint32_t first = thread; first < columns; first += kThreads * kTogether) {
        float read[kTogether];
        CAPSTAN_UNROLL
        for (std::uint32_t k = 0; k < kTogether; ++k) {
          const std::uint32_t j = first + k * kThreads;
          read[k] = j < columns ? scores[j] : kMaskedScore;
        }
        CAPSTAN_UNROLL
        for (std::uint32_t k = 0; k < kTogether; ++k) {
          if (read[k] == kMaskedScore) continue;
          count(state, threshold, query, first_entity + first + k * kThreads, read[k]);
        }
      }
    });
    Counts::template run<gpu::Sum, ThreadState, Shared>(block, &ThreadState::better);
    Counts::template run<gpu::Sum, ThreadState, Shared>(block, &ThreadState::equal);
    block.each([&](std::uint32_t thread, ThreadState& state, Shared&) {
      if (thread != 0) return;
      memory.counts[query].better += state.better;
      memory.counts[query].equal += state.equal;
    });
  }

 private:
  CAPSTAN_BOTH void count(ThreadState& state, const Threshold& threshold, std::uint32_t query,
                          std::uint32_t entity, float score) const {
    if (kModel == ModelKind::transe) score = 2 * score - memory.squares[entity];
    if (!(score <= threshold.high)) {
      ++state.better;
    } else if (score >= threshold.low) {
      decide(state, query, entity, threshold.answer);
    }
  }
  CAPSTAN_BOTH void decide(ThreadState& state, std::uint32_t query, std::uint32_t entity,
                           double answer) const {
    const double score =
        exact_score<kModel>(memory.queries + std::uint64_t{query} * memory.dim,
                            memory.entities + std::uint64_t{entity} * memory.dim, memory.dim);
    state.better += score > answer ? 1 : 0;
    state.equal += score == answer ? 1 : 0;
  }
};

}  // namespace capstan::kge

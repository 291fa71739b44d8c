// device_ranking_bodies.hpp -- what threads of a GPU do in kge::DeviceRanker; see row_bodies.hpp and
// blocks.cuh for how they are called. The rule of ranks, of close calls too, is Ranker's (ranking.cpp).
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

/// A right answer of a query, its own or another known one.
struct RightAnswer {
  std::uint32_t query, entity;
};

/// How many of the other entities score more than a query's answer, and as much.
struct RankCounts {
  std::uint32_t better, equal;
};

/// Exact of the answer, and between which scores only exact ones decide.
struct Threshold {
  double answer;
  float low, high;
};

/// What the bodies of a ranking read and write.
struct RankMemory {
  std::uint32_t dim, part_size;          // part_size: dim, or half of it for complex numbers
  const float* entities;                 // [entities, dim], as is what is given by entity
  float* squares;                        // of the rows' norms
  std::uint32_t* largest_square;         // its bits; numbers of at least 0 are in their bits' order
  const float* relations;                // [relations of the plan, dim]
  const std::uint32_t* query_entities;   // [queries], as are those by query
  const std::uint32_t* query_relations;  // places among the relations
  const std::uint32_t* answers;
  float* queries;  // [queries, dim]
  Threshold* thresholds;
  RankCounts* counts;
  float* scores;  // [a block of queries, a block of entities]
};

/// What is masked counts for no rank.
inline constexpr float kMaskedScore = -std::numeric_limits<float>::infinity();

/// The square of each row's norm, and the largest of all. One block a row.
struct SquareBody {
  static constexpr std::uint32_t kThreads = 64;
  struct Shared {
    gpu::Reduction<double, kThreads> reduction;
  };
  struct Mine {
    double sum;
  };
  RankMemory memory;

  template <class B>
  CAPSTAN_BOTH void operator()(const B& block, std::uint32_t entity) const {
    const float* const row = memory.entities + std::uint64_t{entity} * memory.dim;
    block.each([&](std::uint32_t thread, Mine& mine, Shared&) {
      mine.sum = 0;
      for (std::uint32_t i = thread; i < memory.dim; i += kThreads) {
        mine.sum += static_cast<double>(row[i]) * static_cast<double>(row[i]);
      }
    });
    gpu::Reduction<double, kThreads>::run<gpu::Sum, Mine, Shared>(block, &Mine::sum);
    block.each([&](std::uint32_t thread, Mine& mine, Shared&) {
      if (thread != 0) return;
      const auto square = static_cast<float>(mine.sum);
      memory.squares[entity] = square;
      if (square >= 0) gpu::atomic_max(memory.largest_square, std::bit_cast<std::uint32_t>(square));
    });
  }
};

/// One number a unit of a query.
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

/// The host's sums in the host's order: a product of two floats is exact in double, so that it makes no
/// difference whether it is rounded before it is added. The same bits for the same rows.
template <ModelKind kModel>
CAPSTAN_BOTH double exact_score(const float* query, const float* row, std::uint32_t dim) {
  double product = 0, square = 0;
  for (std::uint32_t i = 0; i < dim; ++i) {
    const auto c = static_cast<double>(row[i]);
    product += static_cast<double>(query[i]) * c;
    if (kModel == ModelKind::transe) square += c * c;
  }
  return kModel == ModelKind::transe ? 2 * product - square : product;
}

/// Thresholds, and counts of 0. One number a query.
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
    // An answer that is not a number: everybody is better.
    if (!(threshold.answer == threshold.answer)) return threshold;
    const double found = margin(row);
    threshold.low = to_float(threshold.answer - found);
    threshold.high = to_float(threshold.answer + found);
    return threshold;
  }
  CAPSTAN_BOTH void store(std::uint32_t query, const float*, const Threshold& threshold) const {
    memory.thresholds[query] = threshold;
    memory.counts[query] = {0, 0};
  }

 private:
  /// The classical bound of a sum of products in any order, twice.
  CAPSTAN_BOTH double margin(const float* query) const {
    double square = 0;
    for (std::uint32_t i = 0; i < memory.dim; ++i) {
      square += static_cast<double>(query[i]) * static_cast<double>(query[i]);
    }
    const auto largest_square = static_cast<double>(std::bit_cast<float>(*memory.largest_square));
    const double product = std::sqrt(square) * std::sqrt(largest_square);
    const double rounding = 2 * (static_cast<double>(memory.dim) + 8) * 0x1p-24;
    const double found = rounding * (kModel == ModelKind::transe ? 2 * product + largest_square : product);
    return found == found ? found : std::numeric_limits<double>::infinity();
  }
  CAPSTAN_BOTH static float to_float(double value) {
    constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
    return static_cast<float>(value < -kLargest ? -kLargest : value > kLargest ? kLargest : value);
  }
};

/// Masks the scores of right answers. One number an answer.
struct MaskAnswerBody {
  const RightAnswer* right;
  std::uint32_t first_query, first_entity, columns;
  float* scores;  // [queries from first_query on, columns entities from first_entity on]

  CAPSTAN_BOTH RightAnswer find(std::uint32_t number) const { return right[number]; }
  CAPSTAN_BOTH float load(std::uint32_t, const RightAnswer&) const { return kMaskedScore; }
  CAPSTAN_BOTH void store(std::uint32_t, const RightAnswer& at, float score) const {
    const std::uint32_t column = at.entity - first_entity;  // of entities before it, more than columns
    if (column < columns) scores[std::uint64_t{at.query - first_query} * columns + column] = score;
  }
};

/// Counts a block of entities for a query. One block a query; a close call is decided by the thread that
/// meets it, about ten of 40,000.
template <ModelKind kModel>
struct CountBody {
  static constexpr std::uint32_t kThreads = 256;
  using Counts = gpu::Reduction<std::uint32_t, kThreads>;
  struct Shared {
    Counts reduction;
  };
  struct Mine {
    std::uint32_t better, equal;
  };
  RankMemory memory;
  std::uint32_t first_query, first_entity, columns;

  template <class B>
  CAPSTAN_BOTH void operator()(const B& block, std::uint32_t number) const {
    const std::uint32_t query = first_query + number;
    block.each([&](std::uint32_t thread, Mine& mine, Shared&) {
      const Threshold threshold = memory.thresholds[query];
      mine = {0, 0};
      for (std::uint32_t j = thread; j < columns; j += kThreads) {
        float score = memory.scores[std::uint64_t{number} * columns + j];
        if (score == kMaskedScore) continue;
        if (kModel == ModelKind::transe) score = 2 * score - memory.squares[first_entity + j];
        if (!(score <= threshold.high)) {
          ++mine.better;
        } else if (score >= threshold.low) {
          decide(mine, query, first_entity + j, threshold.answer);
        }
      }
    });
    Counts::template run<gpu::Sum, Mine, Shared>(block, &Mine::better);
    Counts::template run<gpu::Sum, Mine, Shared>(block, &Mine::equal);
    block.each([&](std::uint32_t thread, Mine& mine, Shared&) {
      if (thread != 0) return;
      memory.counts[query].better += mine.better;
      memory.counts[query].equal += mine.equal;
    });
  }

 private:
  CAPSTAN_BOTH void decide(Mine& mine, std::uint32_t query, std::uint32_t entity, double answer) const {
    const double score =
        exact_score<kModel>(memory.queries + std::uint64_t{query} * memory.dim,
                            memory.entities + std::uint64_t{entity} * memory.dim, memory.dim);
    mine.better += score > answer ? 1 : 0;
    mine.equal += score == answer ? 1 : 0;
  }
};

}  // namespace capstan::kge

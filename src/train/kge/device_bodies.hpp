// device_bodies.hpp -- work of GPU threads in a step of kge::DeviceStep; see row_bodies.hpp and blocks.cuh
// for the calling convention.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/both.hpp"
#include "gpu/divider.hpp"
#include "gpu/row_bodies.hpp"
#include "train/kge/device_plan.hpp"
#include "train/kge/model.hpp"

namespace capstan::kge {

using gpu::Divider;

/// kWidth adjacent floats of a row, or of each half of a row of complex numbers.
template <ModelKind kModel, int kWidth>
struct Unit {
  static constexpr int kParts = kModel == ModelKind::complex ? 2 : 1;
  using Pack = gpu::Pack<float, kWidth>;
  Pack part[kParts];

  /// `part_size`: floats in a part of a row.
  CAPSTAN_BOTH static Unit load(const float* row, std::uint32_t unit, std::uint32_t part_size) {
    Unit read;
    for (int p = 0; p < kParts; ++p) {
      read.part[p] = *reinterpret_cast<const Pack*>(row + p * part_size + unit * kWidth);
    }
    return read;
  }
  CAPSTAN_BOTH void store(float* row, std::uint32_t unit, std::uint32_t part_size) const {
    for (int p = 0; p < kParts; ++p) {
      *reinterpret_cast<Pack*>(row + p * part_size + unit * kWidth) = part[p];
    }
  }
  CAPSTAN_BOTH void add(float factor, const Unit& other) {
    for (int p = 0; p < kParts; ++p) {
      for (int i = 0; i < kWidth; ++i) part[p].v[i] += factor * other.part[p].v[i];
    }
  }
};

/// Rounds as make_query does on a host with fused multiply-add (x86-64: AVX2), so that both give the same
/// bits.
template <ModelKind kModel, int kWidth>
CAPSTAN_BOTH Unit<kModel, kWidth> query_of(const Unit<kModel, kWidth>& entity,
                                           const Unit<kModel, kWidth>& relation) {
  Unit<kModel, kWidth> query;
  for (int i = 0; i < kWidth; ++i) {
    const float h = entity.part[0].v[i], r = relation.part[0].v[i];
    if constexpr (kModel == ModelKind::transe) {
      query.part[0].v[i] = h + r;
    } else if constexpr (kModel == ModelKind::distmult) {
      query.part[0].v[i] = h * r;
    } else {
      const float h_im = entity.part[1].v[i], r_im = relation.part[1].v[i];
      query.part[0].v[i] = std::fma(-h_im, r_im, h * r);
      query.part[1].v[i] = std::fma(h, r_im, h_im * r);
    }
  }
  return query;
}

/// Adds the gradient with respect to one of the two rows of a query, given the gradient with respect to the
/// query. `other` is the other row.
template <ModelKind kModel, int kWidth>
CAPSTAN_BOTH void add_query_gradient(Unit<kModel, kWidth>& sum, const Unit<kModel, kWidth>& gradient,
                                     const Unit<kModel, kWidth>& other) {
  for (int i = 0; i < kWidth; ++i) {
    const float g = gradient.part[0].v[i];
    if constexpr (kModel == ModelKind::transe) {
      sum.part[0].v[i] += g;
    } else if constexpr (kModel == ModelKind::distmult) {
      sum.part[0].v[i] += g * other.part[0].v[i];
    } else {
      const float g_im = gradient.part[1].v[i], re = other.part[0].v[i], im = other.part[1].v[i];
      sum.part[0].v[i] += g * re + g_im * im;
      sum.part[1].v[i] += g_im * re - g * im;
    }
  }
}

/// sum += factor * |z| * z
template <ModelKind kModel, int kWidth>
CAPSTAN_BOTH void add_cubic_penalty(Unit<kModel, kWidth>& sum, float factor,
                                    const Unit<kModel, kWidth>& row) {
  for (int i = 0; i < kWidth; ++i) {
    if constexpr (kModel == ModelKind::complex) {
      const float re = row.part[0].v[i], im = row.part[1].v[i];
      const float slope = factor * std::sqrt(re * re + im * im);
      sum.part[0].v[i] += slope * re;
      sum.part[1].v[i] += slope * im;
    } else {
      sum.part[0].v[i] += factor * std::fabs(row.part[0].v[i]) * row.part[0].v[i];
    }
  }
}

/// Inputs, outputs and scratch buffers of the bodies of a step.
struct StepMemory {
  DeviceLists lists;
  std::uint32_t dim, part_size;  // part_size: dim, or half of it for complex numbers
  std::uint32_t stride;          // row size of queries and of negative_gradients; TransE adds a column
  std::uint32_t query_parts, negative_parts;
  const float* entities;
  const float* relations;
  float* queries;             // [queries, stride]
  float* negatives;           // [negatives, dim]
  float* scores;              // [block of queries, negatives]; replaced by the weights
  float* query_gradients;     // [query_parts, queries, dim]
  float* negative_gradients;  // [negative_parts, negatives, stride]
  float* sums;                // [chunks, dim]
  float* losses;              // [queries], as are the next two
  float* positive_weights;
  float* weight_sums;
  float* entity_gradients;
  float* relation_gradients;

  CAPSTAN_BOTH std::uint32_t answer_use(std::uint32_t query) const {
    const std::uint32_t half = lists.queries / 2;
    return query < half ? query + half : query - half;
  }
  CAPSTAN_BOTH const float* entity_of_use(std::uint32_t use) const {
    return entities + std::uint64_t{lists.entity_positions[use]} * dim;
  }
  CAPSTAN_BOTH const float* relation_of(std::uint32_t query) const {
    return relations + std::uint64_t{lists.relation_positions[query]} * dim;
  }
};

/// Computes the queries and gathers the rows of the negatives. One number per unit.
template <ModelKind kModel, int kWidth>
struct QueryBody {
  using U = Unit<kModel, kWidth>;
  StepMemory memory;
  Divider units;

  CAPSTAN_BOTH const float* find(std::uint32_t number) const {
    return memory.entity_of_use(units(number).quotient);
  }
  CAPSTAN_BOTH U load(std::uint32_t number, const float* entity) const {
    const auto [use, unit] = units(number);
    const U row = U::load(entity, unit, memory.part_size);
    if (use >= memory.lists.queries) return row;
    return query_of<kModel, kWidth>(row, U::load(memory.relation_of(use), unit, memory.part_size));
  }
  CAPSTAN_BOTH void store(std::uint32_t number, const float*, const U& read) const {
    const auto [use, unit] = units(number);
    if (use >= memory.lists.queries) {
      const std::uint64_t row = use - memory.lists.queries;
      return read.store(memory.negatives + row * memory.dim, unit, memory.part_size);
    }
    float* const query = memory.queries + std::uint64_t{use} * memory.stride;
    read.store(query, unit, memory.part_size);
    // The product with the weights then yields their sums as an extra column.
    if (kModel == ModelKind::transe && unit == 0) query[memory.dim] = 1;
  }
};

/// Computes d loss / d query from the partial sums of the product, the answer and, for TransE, the query;
/// stores it over the first partial sum. One number per unit.
template <ModelKind kModel, int kWidth>
struct QueryGradientBody {
  using U = Unit<kModel, kWidth>;
  StepMemory memory;
  Divider units;

  CAPSTAN_BOTH float* find(std::uint32_t number) const {
    return memory.query_gradients + std::uint64_t{units(number).quotient} * memory.dim;
  }
  CAPSTAN_BOTH U load(std::uint32_t number, const float* gradient) const {
    const auto [query, unit] = units(number);
    U sum = U::load(gradient, unit, memory.part_size);
    const std::uint64_t part = std::uint64_t{memory.lists.queries} * memory.dim;
    for (std::uint32_t p = 1; p < memory.query_parts; ++p) {
      sum.add(1, U::load(gradient + p * part, unit, memory.part_size));
    }
    sum.add(memory.positive_weights[query],
            U::load(memory.entity_of_use(memory.answer_use(query)), unit, memory.part_size));
    if constexpr (kModel == ModelKind::transe) {
      sum.add(-memory.weight_sums[query],
              U::load(memory.queries + std::uint64_t{query} * memory.stride, unit, memory.part_size));
    }
    return sum;
  }
  CAPSTAN_BOTH void store(std::uint32_t number, float* gradient, const U& sum) const {
    sum.store(gradient, units(number).remainder, memory.part_size);
  }
};

/// sums[chunk] = sum of the contributions of the chunk's uses to the gradient of their row. One number per
/// unit.
template <ModelKind kModel, int kWidth>
struct ChunkBody {
  using U = Unit<kModel, kWidth>;
  StepMemory memory;
  Divider units;

  struct Uses {
    std::uint32_t begin, end;
  };
  CAPSTAN_BOTH Uses find(std::uint32_t number) const {
    const std::uint32_t chunk = units(number).quotient;
    return {memory.lists.chunk_begins[chunk], end_of(chunk)};
  }
  CAPSTAN_BOTH U load(std::uint32_t number, const Uses& uses) const {
    const auto [chunk, unit] = units(number);
    const bool of_entity = chunk < memory.lists.entity_chunks;
    U sum{};
    for (std::uint32_t at = uses.begin; at < uses.end; ++at) {
      const std::uint32_t use = memory.lists.uses[at];
      if (!of_entity) {
        add_query_gradient<kModel, kWidth>(sum, gradient_of(use, unit),
                                           U::load(memory.entity_of_use(use), unit, memory.part_size));
      } else if (use < memory.lists.queries) {
        add_query_gradient<kModel, kWidth>(sum, gradient_of(use, unit),
                                           U::load(memory.relation_of(use), unit, memory.part_size));
        add_answer(sum, use, unit);
      } else {
        add_negative(sum, use, unit);
      }
    }
    return sum;
  }
  CAPSTAN_BOTH void store(std::uint32_t number, const Uses&, const U& sum) const {
    const auto [chunk, unit] = units(number);
    sum.store(memory.sums + std::uint64_t{chunk} * memory.dim, unit, memory.part_size);
  }

 private:
  CAPSTAN_BOTH std::uint32_t end_of(std::uint32_t chunk) const {
    return memory.lists.chunk_begins[chunk + 1];
  }
  CAPSTAN_BOTH U gradient_of(std::uint32_t query, std::uint32_t unit) const {
    return U::load(memory.query_gradients + std::uint64_t{query} * memory.dim, unit, memory.part_size);
  }
  /// Adds the row's gradient as the answer of the query in the other direction.
  CAPSTAN_BOTH void add_answer(U& sum, std::uint32_t use, std::uint32_t unit) const {
    const std::uint32_t query = memory.answer_use(use);
    const float weight = memory.positive_weights[query];
    sum.add(weight, U::load(memory.queries + std::uint64_t{query} * memory.stride, unit, memory.part_size));
    if constexpr (kModel == ModelKind::transe) {
      sum.add(-weight, U::load(memory.entity_of_use(use), unit, memory.part_size));
    }
  }
  CAPSTAN_BOTH void add_negative(U& sum, std::uint32_t use, std::uint32_t unit) const {
    const std::uint64_t negative = use - memory.lists.queries;
    const std::uint64_t part = std::uint64_t{memory.lists.negatives} * memory.stride;
    for (std::uint32_t p = 0; p < memory.negative_parts; ++p) {
      const float* const from = memory.negative_gradients + p * part + negative * memory.stride;
      sum.add(1, U::load(from, unit, memory.part_size));
      if constexpr (kModel == ModelKind::transe) {
        sum.add(-from[memory.dim], U::load(memory.entity_of_use(use), unit, memory.part_size));
      }
    }
  }
};

/// Computes the gradients of the rows: the sums of their chunks, and the penalty. One number per unit.
template <ModelKind kModel, int kWidth>
struct GradientBody {
  using U = Unit<kModel, kWidth>;
  StepMemory memory;
  Divider units;
  float entity_slope, relation_slope;  // factors of |z| * z in the gradient of the penalty, per use

  struct Chunks {
    std::uint32_t begin, end;
  };
  CAPSTAN_BOTH Chunks find(std::uint32_t number) const {
    const std::uint32_t row = units(number).quotient;
    return {memory.lists.row_chunks[row], memory.lists.row_chunks[row + 1]};
  }
  CAPSTAN_BOTH U load(std::uint32_t number, const Chunks& chunks) const {
    const auto [row, unit] = units(number);
    U sum{};
    for (std::uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
      sum.add(1, U::load(memory.sums + std::uint64_t{chunk} * memory.dim, unit, memory.part_size));
    }
    const bool is_entity = row < memory.lists.entities;
    const float slope = is_entity ? entity_slope : relation_slope;
    if (const std::uint32_t charges = memory.lists.charges[row]; slope > 0 && charges > 0) {
      const float* const from =
          is_entity ? memory.entities + std::uint64_t{row} * memory.dim
                    : memory.relations + std::uint64_t{row - memory.lists.entities} * memory.dim;
      add_cubic_penalty<kModel, kWidth>(sum, slope * static_cast<float>(charges),
                                        U::load(from, unit, memory.part_size));
    }
    return sum;
  }
  CAPSTAN_BOTH void store(std::uint32_t number, const Chunks&, const U& sum) const {
    const auto [row, unit] = units(number);
    float* const to =
        row < memory.lists.entities
            ? memory.entity_gradients + std::uint64_t{row} * memory.dim
            : memory.relation_gradients + std::uint64_t{row - memory.lists.entities} * memory.dim;
    sum.store(to, unit, memory.part_size);
  }
};

}  // namespace capstan::kge

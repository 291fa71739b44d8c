// kernels.hpp -- loops of the deep click models over the fields of an example, compiled for several
// instruction sets. The best one is selected at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace capstan::train {

/// The rows of an example's fields: a weight, then `factors` floats.
struct FieldSlots {
  const std::uint32_t* slots = nullptr;  // a row per field
  std::size_t count = 0;
  std::size_t factors = 0;
};

/// Copies the embeddings of the fields to `embeddings`, one after the other. Returns the sum of the weights.
float gather_fields(const FieldSlots& fields, const float* rows, float* embeddings);

/// Adds `slope` to the weight of each field's row, and `embeddings` to the embeddings.
void scatter_fields(const FieldSlots& fields, float slope, const float* embeddings, float* rows);

/// Vectors of a factorization machine: x_k v_k, where v_k has `factors` floats.
struct ScaledVectors {
  const float* vectors = nullptr;
  const float* scales = nullptr;  // x_k; nullptr: all are 1
  std::size_t count = 0;
  std::size_t factors = 0;
};

/// Adds sum_k x_k v_kf to sums[f]. Returns sum_kf (x_k v_kf)^2.
float add_vectors(const ScaledVectors& terms, float* sums);

/// Adds slope * x_k * (sums[f] - x_k v_kf) to gradients[k * factors + f].
void add_pair_gradients(const ScaledVectors& terms, const float* sums, float slope, float* gradients);

}  // namespace capstan::train

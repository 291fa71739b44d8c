// model.hpp -- scoring functions of knowledge-graph embeddings, and their default settings.
//
// Every model combines an entity row and a relation row into a query vector; the score of a candidate entity
// depends only on the query and the candidate's row. Products and distances of many candidates are one matrix
// product.
//
//   transe    query = h + r            score = -kTransETemperature * |query - c|
//   distmult  query = h * r            score = query . c                          (element by element)
//   complex   query = h * r            score = Re(query . conj(c))                (complex numbers)
//   rescal    query = h^T R            score = query . c                          (R: a matrix)
//   rotate    query = h * e^(i angle)  score = -sum of |query_k - c_k|            (complex numbers)
//
// Relations are reciprocal: row r of the relation table predicts tails from heads, row r + relations predicts
// heads from tails, so the table has 2 * relations rows.
#pragma once

#include <cstdint>
#include <string_view>

namespace capstan::kge {

/// Stored in checkpoints: add at the end, never renumber.
enum class ModelKind : std::uint8_t {
  transe = 0,
  distmult = 1,
  complex = 2,  // a row holds dim / 2 complex numbers: all real parts, then all imaginary parts
  rescal = 3,   // a relation row holds dim x dim floats: the matrix R by rows
  rotate = 4,  // an entity row as in ComplEx; a relation row holds dim / 2 angles, in units of kRotationScale
};

/// How a query is compared with the row of a candidate.
enum class Comparison {
  product,   // query . c
  distance,  // minus the Euclidean distance
  moduli,    // minus the sum of the moduli of the differences of complex numbers
};
Comparison comparison_of(ModelKind kind) noexcept;

/// Returns true if the rows of entities hold complex numbers. `dim` must then be even.
bool has_complex_rows(ModelKind kind) noexcept;
/// Returns true if the model has the N3 penalty.
bool has_n3(ModelKind kind) noexcept;
/// Returns true if the model has kernels for GPUs.
bool runs_on_gpu(ModelKind kind) noexcept;
/// Floats in a row of the relation table.
std::int64_t relation_width(ModelKind kind, std::int64_t dim) noexcept;

/// The name in settings and checkpoints, such as "transe".
std::string_view to_string(ModelKind kind) noexcept;

/// Throws Error(invalid_argument), which lists the names, for an unknown name.
ModelKind parse_model(std::string_view name);

/// Defaults that train a model well without tuning; docs/performance.md has the measurements.
struct ModelDefaults {
  int dim;        // floats per row
  int negatives;  // drawn once per batch and shared by its triples
  int batch;      // triples
  int epochs;
  double learning_rate;  // of Adagrad with initial accumulator 0
  float n3;              // weight of the N3 penalty; 0 for models that have none
  float margin;          // of the self-adversarial loss of RotatE; 0 for other models
  float initial_stddev;  // rows of entities start as normal(0, initial_stddev)
  float initial_relation_stddev;
};

const ModelDefaults& defaults_of(ModelKind kind) noexcept;

}  // namespace capstan::kge

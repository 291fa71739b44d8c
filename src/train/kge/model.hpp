// model.hpp -- scoring functions of knowledge-graph embeddings, and their default settings.
//
// Every model combines an entity row and a relation row into a query vector; the score of a candidate entity
// depends only on the query and the candidate's row, so that many candidates are scored by one matrix
// product.
//
//   transe    query = h + r         score = -kTransETemperature * |query - c|
//   distmult  query = h * r         score = query . c                          (element by element)
//   complex   query = h * r         score = Re(query . conj(c))                (complex numbers)
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
};

/// "transe", "distmult", "complex".
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
  float n3;              // weight of the N3 penalty; TransE has none
  float initial_stddev;  // rows start as normal(0, initial_stddev)
};

const ModelDefaults& defaults_of(ModelKind kind) noexcept;

}  // namespace capstan::kge

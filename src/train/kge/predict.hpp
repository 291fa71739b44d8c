// predict.hpp -- predicted tails of held-out triples, by name.
#pragma once

#include <vector>

#include "io/data/graph.hpp"
#include "train/kge/program.hpp"
#include "train/kge/table.hpp"
#include "train/kge/triple.hpp"

namespace capstan::kge {

/// For each triple, returns the best-scored tail that is not a known answer, and the triple's own tail. Reads
/// the entity table once, block by block. Rows are exact, also if messages are rounded.
std::vector<Prediction> predict_tails(const io::Graph& graph, const std::vector<Triple>& triples,
                                      const Table& entities, const Table& relations, ModelKind model);

}  // namespace capstan::kge

// predict.hpp -- predicted tails of held-out triples, in words.
#pragma once

#include <vector>

#include "capstan/variable.hpp"
#include "io/data/graph.hpp"
#include "train/kge/program.hpp"
#include "train/kge/triple.hpp"

namespace capstan::kge {

/// For each triple, the best-scored tail that is not known to be right already, beside the triple's own. One
/// pass over the entity table, block by block.
std::vector<Prediction> predict_tails(const io::Graph& graph, const std::vector<Triple>& triples,
                                      const Variable<float>& entities, const Variable<float>& relations,
                                      ModelKind model);

}  // namespace capstan::kge

// predict.hpp -- some held-out triples with their tails guessed, in words.
#pragma once

#include <cstdint>
#include <vector>

#include "capstan/variable.hpp"
#include "io/data/graph.hpp"
#include "train/kge/program.hpp"

namespace capstan::kge {

/// `count` test triples drawn by the seed: the best-scored entity that is not known to be right already,
/// beside the one that was left out. One pass over the entity table, block by block.
std::vector<Prediction> predict_some(const io::Graph& graph, const Variable<float>& entities,
                                     const Variable<float>& relations, ModelKind model, int count,
                                     std::uint64_t seed);

}  // namespace capstan::kge

// known_graph.hpp -- the graph that a run is about, as it lies in files.
#pragma once

#include <string>
#include <vector>

#include "io/data/graph.hpp"
#include "train/kge/triple.hpp"
#include "train/kge/true_answers.hpp"

namespace capstan::kge {

/// "wordnet", or a folder with train.txt, valid.txt and test.txt. Throws what the readers throw.
io::Graph load_graph(const std::string& data);
std::vector<Triple> to_triples(const std::vector<io::GraphTriple>& triples);
/// From all triples of a graph: what counts as right when answers are filtered.
TrueAnswers known_answers(const io::Graph& graph);

}  // namespace capstan::kge

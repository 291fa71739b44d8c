// known_graph.hpp -- loads the graph of a run, and its known answers.
#pragma once

#include <string>
#include <vector>

#include "io/data/graph.hpp"
#include "train/kge/triple.hpp"
#include "train/kge/true_answers.hpp"

namespace capstan::kge {

/// Reads `data`: "wordnet", or a directory with train.txt, valid.txt and test.txt. Throws the errors of the
/// readers.
io::Graph load_graph(const std::string& data);
std::vector<Triple> to_triples(const std::vector<io::GraphTriple>& triples);
/// Returns the answers in all triples of the graph (train, valid and test), which filtered ranking excludes.
TrueAnswers known_answers(const io::Graph& graph);

}  // namespace capstan::kge

// known_graph.cpp -- see known_graph.hpp.
#include "train/kge/known_graph.hpp"

#include "io/data/triples.hpp"
#include "io/data/wordnet.hpp"

namespace capstan::kge {

io::Graph load_graph(const std::string& data) {
  return data == "wordnet" ? io::read_wordnet() : io::read_graph(data);
}

std::vector<Triple> to_triples(const std::vector<io::GraphTriple>& triples) {
  std::vector<Triple> out;
  out.reserve(triples.size());
  for (const io::GraphTriple& t : triples) out.push_back({t.head, t.relation, t.tail});
  return out;
}

TrueAnswers known_answers(const io::Graph& graph) {
  std::vector<Triple> all = to_triples(graph.train);
  for (const auto* part : {&graph.valid, &graph.test}) {
    const std::vector<Triple> more = to_triples(*part);
    all.insert(all.end(), more.begin(), more.end());
  }
  return {all, static_cast<std::int64_t>(graph.relations.size())};
}

}  // namespace capstan::kge

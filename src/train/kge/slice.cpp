// slice.cpp -- the closures of `capstan train kge`.
#include "train/kge/slice.hpp"

#include <algorithm>

#include "io/data/triples.hpp"
#include "io/data/wordnet.hpp"

namespace capstan::kge {
namespace {

/// Rows of the entity table that are ranked at a time: some MB, whatever the size of the table.
constexpr std::uint64_t kBlockRows = 8192;

}  // namespace

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

SliceResult train_slice(PerWorker<std::unique_ptr<Trainer>> trainer, Slice slice, Variable<float> entities,
                        Variable<float> relations) {
  return (*trainer)->train(slice, entities, relations);
}

Evaluator::Evaluator(const std::string& data, const RankerOptions& options)
    : answers_(known_answers(load_graph(data))), ranker_(options, answers_) {}

Metrics Evaluator::rank(std::span<const Triple> triples, const Variable<float>& entities,
                        const Variable<float>& relations) {
  ranker_.plan(triples);
  ranker_.begin(entities.lookup(ranker_.entity_ids()).values,
                relations.lookup(ranker_.relation_ids()).values);
  std::vector<float> block;
  for (std::uint64_t first = 0; first < entities.rows(); first += kBlockRows) {
    block.resize(std::min(kBlockRows, entities.rows() - first) * entities.width());
    entities.pull(first, block);
    ranker_.add_block(static_cast<std::int64_t>(first), block);
  }
  return ranker_.finish();
}

std::unique_ptr<Evaluator> make_evaluator(std::string data, RankerOptions options) {
  return std::make_unique<Evaluator>(data, options);
}

Metrics rank_slice(PerWorker<std::unique_ptr<Evaluator>> evaluator, std::vector<Triple> triples,
                   Variable<float> entities, Variable<float> relations) {
  return (*evaluator)->rank(triples, entities, relations);
}

}  // namespace capstan::kge

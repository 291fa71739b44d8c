// slice.hpp -- what runs on the workers: training a slice of an epoch, ranking a slice of the held-out
// triples.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "capstan/capstan.hpp"
#include "io/data/graph.hpp"
#include "train/kge/ranking.hpp"
#include "train/kge/trainer.hpp"
#include "train/kge/triple.hpp"
#include "train/kge/true_answers.hpp"

namespace capstan::kge {

/// "wordnet", or a folder with train.txt, valid.txt and test.txt. Throws what the readers throw.
io::Graph load_graph(const std::string& data);
std::vector<Triple> to_triples(const std::vector<io::GraphTriple>& triples);
/// From all triples of a graph: what counts as right when answers are filtered.
TrueAnswers known_answers(const io::Graph& graph);

SliceResult train_slice(PerWorker<std::unique_ptr<Trainer>> trainer, Slice slice, Variable<float> entities,
                        Variable<float> relations);

/// A worker's filter and ranker. The graph is read on the worker.
class Evaluator {
 public:
  Evaluator(const std::string& data, const RankerOptions& options);
  Metrics rank(std::span<const Triple> triples, const Variable<float>& entities,
               const Variable<float>& relations);

 private:
  TrueAnswers answers_;
  Ranker ranker_;
};
std::unique_ptr<Evaluator> make_evaluator(std::string data, RankerOptions options);

Metrics rank_slice(PerWorker<std::unique_ptr<Evaluator>> evaluator, std::vector<Triple> triples,
                   Variable<float> entities, Variable<float> relations);

}  // namespace capstan::kge

// predict.cpp -- scores every entity for a few queries.
#include "train/kge/predict.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "train/kge/kernels.hpp"
#include "train/kge/known_graph.hpp"

namespace capstan::kge {
namespace {

constexpr std::uint64_t kScoredBlockRows = 8192;

struct Guess {
  Triple triple;
  std::vector<float> query;
  std::span<const std::int32_t> known;
  float truth_score = 0;
  float best_score = -std::numeric_limits<float>::infinity();
  std::int32_t best = 0;
  std::int64_t better = 0;
  std::int64_t equal = 0;
};

void update(Guess& guess, std::int32_t entity, float s) {
  const bool truth = entity == guess.triple.tail;
  if (!truth && std::binary_search(guess.known.begin(), guess.known.end(), entity)) return;
  if (s > guess.best_score) {
    guess.best_score = s;
    guess.best = entity;
  }
  if (truth) return;
  if (s > guess.truth_score) ++guess.better;
  if (s == guess.truth_score) ++guess.equal;
}

}  // namespace

std::vector<Prediction> predict_tails(const io::Graph& graph, const std::vector<Triple>& triples,
                                      const Table& entity_table, const Table& relation_table,
                                      ModelKind model) {
  if (triples.empty()) return {};
  const Table entities = entity_table.exact(), relations = relation_table.exact();
  const TrueAnswers answers = known_answers(graph);
  const std::size_t dim = entities.width();
  std::vector<Guess> guesses;
  for (const Triple& t : triples) {
    Guess guess;
    guess.triple = t;
    guess.known = answers.of(t.head, t.relation);
    const auto ends = entities.lookup(std::vector<std::int64_t>{t.head, t.tail});
    const auto relation = relations.lookup(std::vector<std::int64_t>{t.relation});
    guess.query.resize(dim);
    make_query(model, ends[0].data(), relation[0].data(), guess.query.data(), dim);
    guess.truth_score = score(model, guess.query.data(), ends[1].data(), dim);
    guesses.push_back(std::move(guess));
  }
  std::vector<float> block;
  for (std::uint64_t first = 0; first < entities.rows(); first += kScoredBlockRows) {
    const std::uint64_t rows = std::min(kScoredBlockRows, entities.rows() - first);
    block.resize(rows * dim);
    entities.pull(first, block);
    for (Guess& guess : guesses) {
      for (std::uint64_t i = 0; i < rows; ++i) {
        update(guess, static_cast<std::int32_t>(first + i),
               score(model, guess.query.data(), &block[i * dim], dim));
      }
    }
  }
  std::vector<Prediction> out;
  for (const Guess& guess : guesses) {
    const auto name = [&](std::int32_t entity) { return graph.entities[static_cast<std::size_t>(entity)]; };
    out.push_back({name(guess.triple.head), graph.relations[static_cast<std::size_t>(guess.triple.relation)],
                   name(guess.best), name(guess.triple.tail),
                   1 + static_cast<double>(guess.better) + static_cast<double>(guess.equal) / 2});
  }
  return out;
}

}  // namespace capstan::kge

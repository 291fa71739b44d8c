// saved_model.cpp -- see saved_model.hpp.
#include "train/kge/saved_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <unordered_map>

#include "capstan/error.hpp"
#include "train/kge/kernels.hpp"
#include "train/kge/known_graph.hpp"
#include "train/kge/ranking.hpp"
#include "train/kge/variables.hpp"

namespace capstan::kge {
namespace {

constexpr std::size_t kRankedTriples = 128;  // ranked together, in one pass over the rows of the entities

/// The ids of a model for the indexes of a graph.
std::vector<std::int32_t> ids_of(const std::vector<std::string>& graph, const std::vector<std::string>& model,
                                 const char* what) {
  std::unordered_map<std::string_view, std::int32_t> id_of;
  for (std::size_t i = 0; i < model.size(); ++i) id_of.emplace(model[i], static_cast<std::int32_t>(i));
  std::vector<std::int32_t> ids;
  for (const std::string& name : graph) {
    const auto found = id_of.find(name);
    if (found == id_of.end()) {
      throw Error(Code::invalid_argument, fmt::format("--data: {} \"{}\" is not in the checkpoint, expected "
                                                      "the data that the model was trained on",
                                                      what, name));
    }
    ids.push_back(found->second);
  }
  return ids;
}

std::vector<float> gather(std::span<const float> rows, std::span<const std::int64_t> ids, std::size_t width) {
  std::vector<float> out;
  out.reserve(ids.size() * width);
  for (const std::int64_t id : ids) {
    const auto row = rows.subspan(static_cast<std::size_t>(id) * width, width);
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

/// Calls work(i) for i below `count` on several threads; rethrows the first exception.
void for_each_on_threads(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(std::max(1, threads)));
  {
    std::vector<std::jthread> running;
    for (std::exception_ptr& error : errors) {
      running.emplace_back([&] {
        try {
          for (std::size_t i = next++; i < count; i = next++) work(i);
        } catch (...) {
          error = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace

SavedModel::SavedModel(std::shared_ptr<const train::SavedRows> saved)
    : SavedModel(saved, train::read_saved_program(*saved, "train kge")) {}

SavedModel::SavedModel(std::shared_ptr<const train::SavedRows> saved, const train::SavedProgram& program)
    : model_(parse_model(program.property("--model"))),
      dim_(static_cast<int>(program.number("--dim"))),
      entities_(saved, {kEntityRows, kEntityNames, "entity"}, dim_),
      relations_(saved, {kRelationRows, kRelationNames, "relation"}, relation_width(model_, dim_), 2) {}

std::vector<float> SavedModel::query(std::string_view head, std::string_view relation) const {
  const std::vector<float> from = entities_.row(head);
  const std::vector<float> by = relations_.row(relation);
  std::vector<float> query(from.size());
  make_query(model_, from.data(), by.data(), query.data(), query.size());
  return query;
}

std::vector<train::ScoredName> SavedModel::predict_tails(std::string_view head, std::string_view relation,
                                                         std::size_t count) const {
  const std::vector<float> from = query(head, relation);
  return entities_.best(count, -1, [&](const float* row) {
    return static_cast<double>(kge::score(model_, from.data(), row, from.size()));
  });
}

double SavedModel::score(std::string_view head, std::string_view relation, std::string_view tail) const {
  const std::vector<float> from = query(head, relation);
  const std::vector<float> row = entities_.row(tail);
  return static_cast<double>(kge::score(model_, from.data(), row.data(), row.size()));
}

Metrics SavedModel::evaluate(const io::Graph& graph, int threads) const {
  const auto entity_ids = ids_of(graph.entities, entities_.names(), "entity");
  const auto relation_ids = ids_of(graph.relations, relations_.names(), "relation");
  const auto to_model = [&](const std::vector<io::GraphTriple>& triples) {
    std::vector<Triple> out;
    for (const io::GraphTriple& t : triples) {
      out.push_back({entity_ids[static_cast<std::size_t>(t.head)],
                     relation_ids[static_cast<std::size_t>(t.relation)],
                     entity_ids[static_cast<std::size_t>(t.tail)]});
    }
    return out;
  };
  const std::vector<Triple> test = to_model(graph.test);
  std::vector<Triple> all = to_model(graph.train);
  for (const auto* part : {&graph.valid, &graph.test}) {
    const std::vector<Triple> more = to_model(*part);
    all.insert(all.end(), more.begin(), more.end());
  }
  const auto total = static_cast<std::int64_t>(entities_.names().size());
  const auto relation_count = static_cast<std::int64_t>(relations_.names().size());
  const TrueAnswers answers(all, relation_count);
  const std::vector<float> entity_rows = entities_.all();
  const std::vector<float> relation_rows = relations_.all();
  const auto dim = static_cast<std::size_t>(dim_);
  const auto width = static_cast<std::size_t>(relation_width(model_, dim_));

  std::vector<Metrics> parts((test.size() + kRankedTriples - 1) / kRankedTriples);
  for_each_on_threads(parts.size(), threads, [&](std::size_t i) {
    Ranker ranker({model_, dim_, total, relation_count}, answers);
    const std::size_t first = i * kRankedTriples;
    ranker.plan(std::span(test).subspan(first, std::min(kRankedTriples, test.size() - first)));
    ranker.begin(gather(entity_rows, ranker.entity_ids(), dim),
                 gather(relation_rows, ranker.relation_ids(), width));
    ranker.add_block(0, entity_rows);
    parts[i] = ranker.finish();
  });
  Metrics metrics;
  for (const Metrics& part : parts) metrics.merge(part);  // in the order of the triples
  return metrics;
}

}  // namespace capstan::kge

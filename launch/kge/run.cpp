// run.cpp -- opens the checkpoint, and prints predictions or metrics.
#include "launch/kge/run.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/topology.hpp"
#include "launch/checkpoint/find.hpp"
#include "launch/checkpoint/output.hpp"
#include "train/kge/known_graph.hpp"
#include "train/kge/saved_model.hpp"

namespace capstan::launch::kge_model {
namespace {

using nlohmann::json;

void print_entities(std::span<const kge::ScoredEntity> entities, std::string_view measure, bool as_json) {
  if (as_json) {
    json list = json::array();
    for (const kge::ScoredEntity& one : entities)
      list.push_back({{"entity", one.name}, {std::string(measure), one.score}});
    return checkpoint::print_json(list);
  }
  std::vector<checkpoint::Row> rows;
  for (const kge::ScoredEntity& one : entities) rows.push_back({fmt::format("{:.4f}", one.score), one.name});
  checkpoint::print(checkpoint::table({">" + std::string(measure), "entity"}, rows));
}

void evaluate(const kge::SavedModel& model, const Request& request) {
  const io::Graph graph = kge::load_graph(request.data);
  const kge::Metrics m = model.evaluate(graph, static_cast<int>(topology::allowed_cores().size()));
  if (request.json) {
    checkpoint::print_json(json{{"model", std::string(to_string(model.model()))},
                                {"dim", model.dim()},
                                {"step", model.step()},
                                {"test",
                                 {{"mrr", m.mrr()},
                                  {"hits1", m.hits1()},
                                  {"hits3", m.hits3()},
                                  {"hits10", m.hits10()},
                                  {"queries", m.count}}}});
    return;
  }
  checkpoint::print(fmt::format(
      "{} of {} entities, step {}\ntest, filtered, heads and tails: MRR {:.4f}  Hits@1 {:.4f}  Hits@3 {:.4f} "
      " Hits@10 {:.4f}  ({} queries)\n",
      to_string(model.model()), model.entities().size(), model.step(), m.mrr(), m.hits1(), m.hits3(),
      m.hits10(), m.count));
}

}  // namespace

int run(const Request& request) {
  const kge::SavedModel model(checkpoint::find_checkpoint(request.checkpoint));
  const auto count = static_cast<std::size_t>(request.count);
  switch (request.verb) {
    case Verb::evaluate:
      evaluate(model, request);
      break;
    case Verb::predict:
      print_entities(model.predict_tails(request.entity, request.relation, count), "score", request.json);
      break;
    case Verb::similar:
      print_entities(model.similar(request.entity, count), "cosine", request.json);
      break;
    case Verb::none:
      break;
  }
  return 0;
}

}  // namespace capstan::launch::kge_model

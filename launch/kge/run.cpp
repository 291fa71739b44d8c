// run.cpp -- opens the checkpoint, and prints predictions or metrics.
#include "launch/kge/run.hpp"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/topology.hpp"
#include "capstan/error.hpp"
#include "launch/checkpoint/find.hpp"
#include "launch/checkpoint/output.hpp"
#include "train/kge/known_graph.hpp"
#include "train/kge/saved_model.hpp"
#include "train/saved_program.hpp"
#include "train/scoring/named_scores.hpp"
#include "train/word2vec/saved_words.hpp"

namespace capstan::launch::kge_model {
namespace {

using nlohmann::json;

void print_names(std::span<const train::ScoredName> names, const std::string& kind,
                 const std::string& measure, bool as_json) {
  if (as_json) return checkpoint::print_json(train::ranked(names, kind, measure));
  std::vector<checkpoint::Row> rows;
  for (const train::ScoredName& one : names) rows.push_back({fmt::format("{:.4f}", one.score), one.name});
  checkpoint::print(checkpoint::table({">" + measure, kind}, rows));
}

void print_similar(std::shared_ptr<const train::SavedRows> saved, const Request& request) {
  const auto print = [&](const train::NamedRows& rows) {
    print_names(rows.most_similar(request.entity, static_cast<std::size_t>(request.count)), rows.kind(),
                "cosine", request.json);
  };
  const train::SavedProgram program = train::read_saved_program(*saved);
  if (program.program == "train word2vec") {
    print(train::word2vec::open_saved_words(std::move(saved)));
  } else if (program.program == "train kge") {
    print(kge::SavedModel(std::move(saved)).entities());
  } else {
    throw Error(Code::failed_precondition,
                fmt::format("{} was saved by {}, expected `capstan train kge` or `capstan train word2vec`",
                            program.path, program.description()));
  }
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
      to_string(model.model()), model.entities().names().size(), model.step(), m.mrr(), m.hits1(), m.hits3(),
      m.hits10(), m.count));
}

}  // namespace

int run(const Request& request) {
  std::shared_ptr<const train::SavedRows> saved =
      train::open_saved_rows(checkpoint::find_checkpoint(request.checkpoint));
  switch (request.verb) {
    case Verb::evaluate:
      evaluate(kge::SavedModel(std::move(saved)), request);
      break;
    case Verb::predict: {
      const kge::SavedModel model(std::move(saved));
      print_names(
          model.predict_tails(request.entity, request.relation, static_cast<std::size_t>(request.count)),
          "entity", "score", request.json);
      break;
    }
    case Verb::similar:
      print_similar(std::move(saved), request);
      break;
    case Verb::none:
      break;
  }
  return 0;
}

}  // namespace capstan::launch::kge_model

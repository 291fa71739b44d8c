// results.cpp -- see results.hpp.
#include "train/kge/results.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace capstan::kge {

train::Evaluation evaluation_of(const Metrics& m) {
  return {{{"mrr", m.mrr(), "MRR"},
           {"hits1", m.hits1(), "Hits@1"},
           {"hits3", m.hits3(), "Hits@3"},
           {"hits10", m.hits10(), "Hits@10"}},
          m.count,
          "queries"};
}

std::string to_string(const Prediction& p) {
  const std::string shown = fmt::format("{} -- {} --> {}", p.head, p.relation, p.predicted);
  if (p.right()) return shown + "   right";
  return shown + fmt::format("   wrong: expected {}, which has rank {:g}", p.truth, p.rank);
}

std::string predictions_header(const Report& report) {
  const auto& best = report.predicted_relations;
  const std::string drawn = "predictions for held-out triples, drawn by --seed from ";
  if (best.empty()) {
    return drawn + "all relations (no validation triples show which of them the model has learned)";
  }
  std::vector<std::string> names;
  for (const LearnedRelation& one : best) names.push_back(fmt::format("{} {:.2f}", one.name, one.tails_mrr));
  return drawn + fmt::format("the {} relation{} with the best validation MRR of tails, of {} compared ({})",
                             best.size(), best.size() == 1 ? "" : "s", report.compared_relations,
                             fmt::join(names, ", "));
}

train::Results results_of(const ProgramOptions& options, const Report& report) {
  using nlohmann::json;
  const std::string model(to_string(options.model));
  train::Results results{.run = report.run};
  results.headline = fmt::format("{} on {} entities, {} relations, {} training triples", model,
                                 report.entities, report.relations, report.train);
  results.lines = {
      "test, filtered, heads and tails: " + train::to_string(evaluation_of(report.result)),
      fmt::format("  MRR is the mean of 1/rank of the right answer among all entities: 1 is perfect, random "
                  "guessing: {:.2g}",
                  report.random_mrr)};
  if (!report.predictions.empty()) results.more.push_back(predictions_header(report) + ":");
  json predictions = json::array();
  for (const Prediction& p : report.predictions) {
    results.more.push_back("  " + to_string(p));
    predictions.push_back({{"head", p.head},
                           {"relation", p.relation},
                           {"predicted", p.predicted},
                           {"truth", p.truth},
                           {"rank", p.rank},
                           {"right", p.right()}});
  }
  json predicted_relations = json::array();
  for (const LearnedRelation& one : report.predicted_relations) {
    predicted_relations.push_back({{"relation", one.name}, {"valid_tails_mrr", one.tails_mrr}});
  }
  results.used = {{"model", model},
                  {"dim", options.dim},
                  {"negatives", static_cast<int>(report.chosen.negatives)},
                  {"batch", options.batch},
                  {"epochs", options.epochs},
                  {"patience", options.patience},
                  {"n3", report.chosen.n3},
                  {"margin", report.chosen.margin},
                  {"optimizer", std::string(to_string(options.optimizer.kind))},
                  {"learning_rate", report.chosen.learning_rate}};
  results.data = {{"entities", report.entities},
                  {"relations", report.relations},
                  {"train", report.train},
                  {"valid", report.valid},
                  {"test", report.test}};
  results.quality = {{"test", train::to_json(evaluation_of(report.result))},
                     {"random_mrr", report.random_mrr},
                     {"predictions", predictions},
                     {"predicted_relations", predicted_relations}};
  if (!report.auto_search.is_null()) results.quality["auto"] = report.auto_search;
  return results;
}

}  // namespace capstan::kge

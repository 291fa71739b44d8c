// train_kge.cpp -- `capstan train kge` on every rank: the coordinator runs the program and displays its
// progress, the other ranks serve.
#include "launch/train_kge.hpp"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.hpp"
#include "capstan/capstan.hpp"
#include "cluster/bootstrap/join.hpp"
#include "launch/progress.hpp"
#include "launch/progress_terminal.hpp"
#include "launch/training_output.hpp"
#include "launch/version.hpp"
#include "train/kge/program.hpp"

namespace capstan {
namespace {

using nlohmann::json;

json to_json(const kge::Metrics& m) {
  return {{"mrr", m.mrr()},
          {"hits1", m.hits1()},
          {"hits3", m.hits3()},
          {"hits10", m.hits10()},
          {"queries", m.count}};
}

void write_summary(const std::string& path, const Cluster& cluster, const kge::ProgramOptions& options,
                   const kge::Report& report) {
  json epochs = json::array();
  for (const kge::EpochReport& e : report.epochs) {
    json entry{{"epoch", e.epoch}, {"loss", e.loss}, {"seconds", e.seconds}};
    if (e.evaluated) entry["valid"] = to_json(e.valid);
    epochs.push_back(std::move(entry));
  }
  json predictions = json::array();
  for (const kge::Prediction& p : report.predictions) {
    predictions.push_back({{"head", p.head},
                           {"relation", p.relation},
                           {"predicted", p.predicted},
                           {"truth", p.truth},
                           {"rank", p.rank},
                           {"right", p.right()}});
  }
  json predicted_relations = json::array();
  for (const kge::LearnedRelation& one : report.predicted_relations) {
    predicted_relations.push_back({{"relation", one.name}, {"valid_tails_mrr", one.tails_mrr}});
  }
  const json summary{{"program", "capstan train kge"},
                     {"version", launch::version_text()},
                     {"cluster", launch::cluster_json(cluster)},
                     {"settings", parse_json(options.settings_json, "the settings", Code::internal)},
                     {"used",
                      {{"model", std::string(kge::to_string(options.model))},
                       {"dim", options.dim},
                       {"negatives", options.negatives},
                       {"batch", options.batch},
                       {"epochs", options.epochs},
                       {"n3", options.n3},
                       {"optimizer", std::string(to_string(options.optimizer.kind))},
                       {"learning_rate", options.optimizer.learning_rate}}},
                     {"data",
                      {{"entities", report.entities},
                       {"relations", report.relations},
                       {"train", report.train},
                       {"valid", report.valid},
                       {"test", report.test}}},
                     {"training",
                      {{"first_epoch", report.first_epoch},
                       {"triples", report.triples},
                       {"seconds", report.seconds},
                       {"triples_per_second", report.triples_per_second()},
                       {"evaluation_seconds", report.evaluation_seconds},
                       {"checkpoint_seconds", report.checkpoint_seconds},
                       {"workers_lost", report.workers_lost},
                       {"epochs", epochs}}},
                     {"test", to_json(report.result)},
                     {"random_mrr", report.random_mrr},
                     {"predictions", predictions},
                     {"predicted_relations", predicted_relations},
                     {"checkpoint", report.checkpoint},
                     {"resumed_from", report.resumed_from}};
  launch::write_summary(path, summary);
}

void print_report(const kge::ProgramOptions& options, const kge::Report& report, const std::string& summary) {
  fmt::print("\n{} on {} entities, {} relations, {} training triples\n",
             std::string(kge::to_string(options.model)), report.entities, report.relations, report.train);
  launch::print_rate("triples", static_cast<double>(report.triples), report.seconds,
                     report.evaluation_seconds, report.checkpoint_seconds);
  const kge::Metrics& m = report.result;
  fmt::print(
      "test, filtered, heads and tails: MRR {:.4f}  Hits@1 {:.4f}  Hits@3 {:.4f}  Hits@10 {:.4f}  ({} "
      "queries)\n",
      m.mrr(), m.hits1(), m.hits3(), m.hits10(), m.count);
  fmt::print(
      "  MRR is the mean of 1/rank of the right answer among all entities: 1 is perfect, random guessing: "
      "{:.2g}\n",
      report.random_mrr);
  if (report.workers_lost > 0)
    fmt::print("{} worker(s) died during the training; the others took over their work\n",
               report.workers_lost);
  if (!report.predictions.empty()) fmt::print("\n{}:\n", kge::predictions_header(report));
  for (const kge::Prediction& p : report.predictions) fmt::print("  {}\n", kge::to_string(p));
  if (!report.checkpoint.empty()) fmt::print("\ncheckpoint: {}\n", report.checkpoint);
  if (!summary.empty()) fmt::print("summary:    {}\n", summary);
  std::fflush(stdout);
}

}  // namespace

int run_train_kge(const Settings& settings, int, char**) {
  // Before any process starts: all ranks find the same mistakes, and rank 0 reports them.
  const kge::ProgramOptions options = kge::ProgramOptions::from(settings);
  const std::string& summary = settings.text("summary");
  launch::check_summary_path(summary);
  train::StopRequest::install_handler(options.stop);
  const Cluster cluster = cluster::join(settings);
  if (cluster.role() != Role::coordinator) return Server(cluster).join();

  launch::announce(cluster, settings);
  launch::ProgressTerminal terminal(settings.text("progress"));
  launch::Progress progress(terminal.stream(), terminal.options());
  launch::ProgressState last;
  kge::ProgramHooks hooks;
  hooks.progress = [&](const kge::TrainProgress& p) {
    last = {p.epoch, p.epochs, p.done, p.total, p.loss};
    progress.update(last);
  };
  hooks.log = [&](const std::string& text) {
    progress.clear();
    fmt::print(stderr, "{}\n", text);
  };
  const kge::Report report = kge::run_program(cluster, options, hooks);
  progress.finish(last);
  if (!report.stopped.empty()) return launch::requeue(report.stopped, report.checkpoint);
  if (!summary.empty()) write_summary(summary, cluster, options, report);
  print_report(options, report, summary);
  return 0;
}

}  // namespace capstan

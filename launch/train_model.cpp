// train_model.cpp -- `capstan train lr|fm|mlp` on every rank: the coordinator runs the program and displays
// its progress, the other ranks serve.
#include "launch/train_model.hpp"

#include <fmt/format.h>

#include <cmath>
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
#include "train/model_program.hpp"

namespace capstan {
namespace {

using nlohmann::json;

json to_json(const train::Metrics& m) {
  json metrics{{"logloss", m.log_loss}, {"accuracy", m.accuracy}, {"examples", m.examples}};
  if (!std::isnan(m.auc)) metrics["auc"] = m.auc;
  return metrics;
}

json summary_of(const Cluster& cluster, const train::ModelOptions& options,
                const train::ModelReport& report) {
  json epochs = json::array();
  for (const train::ModelEpoch& e : report.epochs) {
    json entry{{"epoch", e.epoch}, {"loss", e.loss}, {"seconds", e.seconds}};
    if (e.evaluated) entry[report.test ? "test" : "train"] = to_json(*e.evaluated);
    epochs.push_back(std::move(entry));
  }
  json used{{"mode", std::string(to_string(options.mode))},
            {"batch", options.batch},
            {"epochs", options.epochs},
            {"l2", options.l2},
            {"optimizer", std::string(to_string(options.optimizer.kind))},
            {"learning_rate", options.optimizer.learning_rate}};
  if (options.mode == train::Mode::stale_synchronous) used["staleness"] = options.staleness;
  if (options.program == train::Program::fm) used["factors"] = options.factors;
  if (options.program == train::Program::mlp) used["hidden"] = options.hidden;
  json train_metrics = to_json(report.train);
  train_metrics["objective"] = report.objective;
  json summary{{"program", fmt::format("capstan train {}", to_string(options.program))},
               {"version", launch::version_text()},
               {"cluster", launch::cluster_json(cluster)},
               {"settings", parse_json(options.settings_json, "the settings", Code::internal)},
               {"used", used},
               {"data",
                {{"train", report.data.train},
                 {"test", report.data.test},
                 {"width", report.data.width},
                 {"classes", report.data.classes}}},
               {"training",
                {{"first_epoch", report.first_epoch},
                 {"examples", report.examples},
                 {"seconds", report.seconds},
                 {"examples_per_second", report.examples_per_second()},
                 {"evaluation_seconds", report.evaluation_seconds},
                 {"checkpoint_seconds", report.checkpoint_seconds},
                 {"workers_lost", report.workers_lost},
                 {"epochs", epochs}}},
               {"train", train_metrics},
               {"checkpoint", report.checkpoint},
               {"resumed_from", report.resumed_from}};
  if (report.test) summary["test"] = to_json(*report.test);
  return summary;
}

void print_report(const train::ModelOptions& options, const train::ModelReport& report,
                  const std::string& summary) {
  const bool images = options.program == train::Program::mlp;
  fmt::print("\n{} on {} training examples, {} {}\n", to_string(options.program), report.data.train,
             report.data.width, images ? "pixels" : "features");
  launch::print_rate("examples", static_cast<double>(report.examples), report.seconds,
                     report.evaluation_seconds, report.checkpoint_seconds);
  fmt::print("train: objective {:.10f}  {}\n", report.objective, train::to_string(report.train));
  if (report.test) fmt::print("test:  {}\n", train::to_string(*report.test));
  if (report.workers_lost > 0) {
    fmt::print("{} worker(s) died during the training; the others took over their work\n",
               report.workers_lost);
  }
  if (!report.checkpoint.empty()) fmt::print("\ncheckpoint: {}\n", report.checkpoint);
  if (!summary.empty()) fmt::print("summary:    {}\n", summary);
  std::fflush(stdout);
}

}  // namespace

int run_train_model(train::Program program, const Settings& settings) {
  // Before any process starts: all ranks find the same mistakes, and rank 0 reports them.
  const train::ModelOptions options = train::ModelOptions::from(program, settings);
  const std::string& summary = settings.text("summary");
  launch::check_summary_path(summary);
  train::StopRequest::install_handler(options.stop);
  const Cluster cluster = cluster::join(settings);
  if (cluster.role() != Role::coordinator) return Server(cluster).join();

  launch::announce(cluster, settings);
  launch::ProgressTerminal terminal(settings.text("progress"));
  launch::ProgressOptions shown = terminal.options();
  shown.unit = "examples";
  launch::Progress progress(terminal.stream(), shown);
  launch::ProgressState last;
  train::ModelHooks hooks;
  hooks.progress = [&](const train::ModelProgress& p) {
    last = {p.epoch, p.epochs, p.done, p.total, p.loss};
    progress.update(last);
  };
  hooks.log = [&](const std::string& text) {
    progress.clear();
    fmt::print(stderr, "{}\n", text);
  };
  const train::ModelReport report = train::run_model(cluster, options, hooks);
  progress.finish(last);
  if (!report.stopped.empty()) return launch::requeue(report.stopped, report.checkpoint);
  launch::write_summary(summary, summary_of(cluster, options, report));
  print_report(options, report, summary);
  return 0;
}

}  // namespace capstan

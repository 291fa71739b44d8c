// train.cpp -- `capstan train PROGRAM` on every rank: the coordinator runs the program and displays its
// progress, the other ranks serve.
#include "launch/train.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "capstan/capstan.hpp"
#include "cluster/bootstrap/join.hpp"
#include "launch/progress.hpp"
#include "launch/progress_terminal.hpp"
#include "launch/training_output.hpp"
#include "launch/version.hpp"
#include "train/program.hpp"

namespace capstan {
namespace {

using nlohmann::json;

json training_json(const train::RunReport& run, const std::string& unit) {
  json epochs = json::array();
  for (const train::EpochReport& e : run.epochs) {
    json entry{{"epoch", e.epoch}, {"loss", e.loss}, {"seconds", e.seconds}};
    if (e.evaluated) entry[to_string(e.evaluated_part)] = train::to_json(*e.evaluated);
    epochs.push_back(std::move(entry));
  }
  return {{"first_epoch", run.first_epoch},
          {"best_epoch", run.best_epoch},
          {unit, run.items},
          {"seconds", run.seconds},
          {unit + "_per_second", run.items_per_second()},
          {"evaluation_seconds", run.evaluation_seconds},
          {"checkpoint_seconds", run.checkpoint_seconds},
          {"workers_lost", run.workers_lost},
          {"epochs", epochs}};
}

json summary_of(const Cluster& cluster, const std::string& name, const train::TrainingProgram& program,
                const train::Results& results) {
  json summary{{"program", "capstan train " + name},
               {"version", launch::version_text()},
               {"cluster", launch::cluster_json(cluster)},
               {"settings", parse_json(program.options().settings_json, "the settings", Code::internal)},
               {"used", results.used},
               {"data", results.data},
               {"training", training_json(results.run, std::string(program.unit()))},
               {"checkpoint", results.run.checkpoint},
               {"resumed_from", results.run.resumed_from}};
  summary.update(results.quality);
  return summary;
}

void print(const train::TrainingProgram& program, const train::Results& results, const std::string& summary) {
  const train::RunReport& run = results.run;
  fmt::print("\n{}\n", results.headline);
  launch::print_rate(program.unit(), static_cast<double>(run.items), run.seconds, run.evaluation_seconds,
                     run.checkpoint_seconds);
  for (const std::string& line : results.lines) fmt::print("{}\n", line);
  if (run.workers_lost > 0)
    fmt::print("{} worker(s) died during the training; the others took over their work\n", run.workers_lost);
  if (!results.more.empty()) fmt::print("\n");
  for (const std::string& line : results.more) fmt::print("{}\n", line);
  if (!run.checkpoint.empty()) fmt::print("\ncheckpoint: {}\n", run.checkpoint);
  if (!summary.empty()) fmt::print("summary:    {}\n", summary);
  std::fflush(stdout);
}

}  // namespace

int run_train(const std::string& name, const Settings& settings) {
  // Before any process starts: all ranks find the same mistakes, and rank 0 reports them.
  const std::unique_ptr<train::TrainingProgram> program = train::make_program(name, settings);
  const std::string& summary = settings.text("summary");
  launch::check_summary_path(summary);
  train::StopRequest::install_handler(program->options().stop);
  const Cluster cluster = cluster::join(settings);
  if (cluster.role() != Role::coordinator) return Server(cluster).join();

  launch::announce(cluster, settings);
  launch::ProgressTerminal terminal(settings.text("progress"));
  launch::ProgressOptions shown = terminal.options();
  shown.unit = program->unit();
  launch::Progress progress(terminal.stream(), shown);
  launch::ProgressState last;
  train::RunHooks hooks;
  hooks.progress = [&](const train::RunProgress& p) {
    last = {p.epoch, p.epochs, p.done, p.total, p.loss, p.may_end_early};
    progress.update(last);
  };
  hooks.log = [&](const std::string& text) {
    progress.clear();
    fmt::print(stderr, "{}\n", text);
  };
  const train::Results results = program->run(cluster, hooks);
  progress.finish(last);
  if (!results.run.stopped.empty()) return launch::requeue(results.run.stopped, results.run.checkpoint);
  launch::write_summary(summary, summary_of(cluster, name, *program, results));
  print(*program, results, summary);
  return 0;
}

}  // namespace capstan

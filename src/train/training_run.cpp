// training_run.cpp -- see training_run.hpp.
#include "train/training_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "capstan/error.hpp"

namespace capstan::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The value of a property that a checkpoint or this run does not have. Checkpoints of earlier versions do
/// not have properties that had only one value.
std::string value_of_absent(const std::string& name) { return name == "--table-dtype" ? "float32" : "none"; }

}  // namespace

TrainingRun::TrainingRun(const Cluster& cluster, Described described, const RunOptions& options,
                         const RunHooks& hooks)
    : program_(std::move(described.program)),
      unit_(std::move(described.unit)),
      options_(options),
      hooks_(hooks),
      selection_(std::move(described.selection)),
      strategy_(cluster, options.strategy_options(cluster.count(Role::ps))),
      scope_(strategy_.scope()),
      stop_(options.stop, !options.checkpoint_dir.empty()),
      early_stopping_(options.patience, selection_.larger_is_better),
      best_values_(strategy_, options, hooks.log) {
  if (!options_.checkpoint_dir.empty()) open_checkpoints();
  coordinator_.emplace(strategy_);
}

void TrainingRun::open_checkpoints() {
  checkpoints_.emplace(
      strategy_, CheckpointOptions{options_.checkpoint_dir, options_.max_to_keep, options_.settings_json});
  const auto newest = checkpoints_->latest();
  if (!newest || options_.resume) return;
  throw Error(Code::failed_precondition,
              fmt::format("{} holds checkpoints of an earlier run, up to step {}, expected none; resume from "
                          "them with --resume, or set another --checkpoint-dir",
                          options_.checkpoint_dir, *newest));
}

void TrainingRun::check_state(const std::string& text, const std::string& where,
                              const Identity& identity) const {
  const auto saved = try_parse_json(text);
  if (!saved.is_object() || saved.value("program", "") != program_ || !saved.contains("identity")) {
    throw Error(Code::failed_precondition, fmt::format("{} was not saved by `capstan {}`", where, program_));
  }
  Identity all = identity;
  for (const auto& [name, value] : saved["identity"].items()) {
    const bool known =
        std::ranges::any_of(identity, [&name = name](const auto& one) { return one.first == name; });
    if (!known) all.emplace_back(name, value_of_absent(name));
  }
  for (const auto& [name, value] : all) {
    const std::string saved_value = saved["identity"].value(name, value_of_absent(name));
    if (saved_value == value) continue;
    const bool recorded = saved["identity"].contains(name);
    throw Error(
        Code::failed_precondition,
        fmt::format("{} was saved with {} {}, this run has {}; {}use the same options (also --valid, "
                    "--valid-fraction and --patience) and data, or another --checkpoint-dir",
                    where, name, saved_value, value,
                    recorded ? ""
                             : "if an earlier version saved the checkpoint, it does not record this "
                               "and cannot be resumed: train again in another directory; otherwise "));
  }
}

nlohmann::json TrainingRun::resume(const Identity& identity) {
  identity_ = identity;
  nlohmann::json none = nlohmann::json::object();
  if (!options_.resume) return none;
  const auto step = checkpoints_->restore_latest(
      [&](const std::string& state, const std::string& where) { check_state(state, where, identity); });
  if (!step) {
    hooks_.log("no checkpoint in " + options_.checkpoint_dir + ": starting from the beginning");
    return none;
  }
  report_.resumed_from = checkpoints_->restored_from().string();
  nlohmann::json state = parse_json(checkpoints_->user_state(), "the user state", Code::data_loss);
  report_.first_epoch = state.value("epoch", 0) + 1;
  const auto begun = state.value("begun", std::int64_t{0});
  hooks_.log(fmt::format("resumed from {} after epoch {}{}", report_.resumed_from, report_.first_epoch - 1,
                         begun > 0 ? fmt::format(" and {} {}", begun, unit_) : ""));
  early_stopping_.restore(state.value("early_stopping", nlohmann::json::object()));
  out_of_time_ = state.value("out_of_time", false);
  const bool ends =
      early_stopping_.should_stop() || state.value("epoch", 0) >= options_.epochs || out_of_time_;
  complete_ = options_.patience > 0 && state.value("complete", false) && ends;
  if (complete_) {
    report_.best_epoch = state.value("result_of_epoch", 0);
    hooks_.log("the run is complete: nothing to train");
  }
  return state;
}

void TrainingRun::add_evaluation(const Evaluation& evaluation, Part part, double seconds, std::int64_t step,
                                 bool may_keep) {
  EpochReport& now = report_.epochs.back();
  now.evaluated = evaluation;
  now.evaluated_part = part;
  report_.evaluation_seconds += seconds;
  for (const Metric& metric : evaluation.metrics) {
    coordinator_->scalar(fmt::format("{}/{}", to_string(part), metric.name), metric.value, step);
  }
  hooks_.log(fmt::format("epoch {}: {} {}  loss {:.6f}", now.epoch, to_string(part), to_string(evaluation),
                         now.loss));
  if (options_.patience == 0 || !may_keep) return;
  if (!early_stopping_.record(now.epoch, value_of(evaluation, selection_.metric))) return;
  const auto begin = Clock::now();
  best_values_.keep(now.epoch, state_of({{"epoch", now.epoch}}).dump());
  report_.checkpoint_seconds += seconds_since(begin);
}

bool TrainingRun::ends_after(int epoch, bool out_of_time) {
  if (epoch < options_.epochs && !early_stopping_.should_stop() && !out_of_time) return false;
  out_of_time_ = out_of_time;
  complete_ = true;
  const auto best = early_stopping_.best_epoch();
  if (options_.patience == 0 || !best || *best == epoch) return true;
  const auto begin = Clock::now();
  if (best_values_.restore(*best)) {
    report_.best_epoch = *best;
    hooks_.log(
        fmt::format("epoch {} had the best valid {}: its values are the result", *best, selection_.metric));
  }
  report_.checkpoint_seconds += seconds_since(begin);
  return true;
}

void TrainingRun::continue_from_best(int epoch) {
  early_stopping_.restart();
  const auto best = early_stopping_.best_epoch();
  if (!best || *best == epoch) return;
  const auto begin = Clock::now();
  if (best_values_.restore(*best)) hooks_.log(fmt::format("training continues from epoch {}", *best));
  report_.checkpoint_seconds += seconds_since(begin);
}

bool TrainingRun::checkpoint_is_due(int epoch) const {
  return checkpoints_ && (complete_ || epoch % options_.checkpoint_every == 0);
}

nlohmann::json TrainingRun::state_of(nlohmann::json progress) const {
  progress["program"] = program_;
  progress["identity"] = nlohmann::json::object();
  for (const auto& [name, value] : identity_) progress["identity"][name] = value;
  if (options_.patience > 0) {
    progress["early_stopping"] = early_stopping_.state();
    progress["complete"] = complete_;
    progress["out_of_time"] = out_of_time_;
    progress["result_of_epoch"] = report_.best_epoch;
  }
  return progress;
}

void TrainingRun::save_checkpoint(int step, const nlohmann::json& progress, bool background) {
  const auto begin = Clock::now();
  report_.checkpoint =
      checkpoints_->save(step, state_of(progress).dump(), {.background = background}).string();
  report_.checkpoint_seconds += seconds_since(begin);
}

}  // namespace capstan::train

// model_program.cpp -- assigns shares to workers, collects losses and scores, saves checkpoints.
#include "train/model_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <type_traits>

#include "base/json.hpp"
#include "capstan/capstan.hpp"
#include "train/after_recovery.hpp"
#include "train/model.hpp"
#include "train/shares.hpp"

namespace capstan::train {
namespace {

using Clock = std::chrono::steady_clock;

/// Examples that one closure evaluates; bounds the size of its result, which contains their logits.
constexpr std::int64_t kEvaluateSlice = 1 << 18;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::unique_ptr<Model> make_model(const ModelOptions& options, ClusterCoordinator& coordinator) {
  return options.program == Program::mlp ? make_image_model(options, coordinator)
                                         : make_sparse_model(options, coordinator);
}

Metrics metrics_of(const Scores& scores) {
  return {scores.examples, scores.log_loss(), scores.accuracy(), scores.auc()};
}

class ModelProgram {
 public:
  ModelProgram(const Cluster& cluster, const ModelOptions& options, const ModelHooks& hooks)
      : options_(options),
        hooks_(hooks),
        strategy_(cluster, {.variable_partitioner = FixedShardsPartitioner{cluster.count(Role::ps)},
                            .memory = options.memory,
                            .communication_dtype = options.communication_dtype,
                            .int8_lookups = options.int8_lookups}),
        scope_(strategy_.scope()),
        coordinator_(strategy_),
        stop_(options.stop, !options.checkpoint_dir.empty()),
        shares_(coordinator_.workers()) {
    if (!options_.checkpoint_dir.empty()) open_checkpoints();
    model_ = make_model(options_, coordinator_);
    for (const DataSizes& part : run_for_each_share<DataSizes>([&](int worker, std::int64_t share) {
           return model_->load(worker, {{share}, shares_});
         })) {
      report_.data = part;  // totals of all shares; every worker returns the same
    }
    model_->create(report_.data);
    if (model_->needs_preparation()) {
      run_for_each_share<void>([&](int worker, std::int64_t share) {
        return model_->prepare(worker, {{share}, shares_});
      });
    }
  }

  ModelReport run() {
    const int done = options_.resume ? resume() : 0;
    report_.first_epoch = done + 1;
    progress(done, std::numeric_limits<double>::quiet_NaN());
    for (int epoch = done + 1; epoch <= options_.epochs; ++epoch) {
      const auto begin = Clock::now();
      train(epoch);
      // Only complete epochs can be resumed from, so the time left must suffice for another one.
      report_.stopped = stop_.reason(std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - begin));
      if (!report_.stopped.empty()) {
        checkpoint(epoch, false);
        return std::move(report_);
      }
      const bool last = epoch == options_.epochs;
      const bool scheduled = options_.eval_every > 0 && epoch % options_.eval_every == 0;
      if (scheduled || last) evaluate_epoch();
      if (checkpoints_ && (last || epoch % options_.checkpoint_every == 0)) checkpoint(epoch, !last);
    }
    const auto begin = Clock::now();
    report_.train = evaluate(false);
    report_.data.width = model_->learned_features().value_or(report_.data.width);
    report_.objective = report_.train.log_loss + model_->penalty();
    if (report_.data.test > 0) report_.test = evaluate(true);
    report_.evaluation_seconds += seconds_since(begin);
    report_.workers_lost = std::max(0, static_cast<int>(shares_) - coordinator_.workers());
    return std::move(report_);
  }

 private:
  void open_checkpoints() {
    checkpoints_.emplace(
        strategy_, CheckpointOptions{options_.checkpoint_dir, options_.max_to_keep, options_.settings_json});
    if (const auto newest = checkpoints_->latest(); newest && !options_.resume) {
      throw Error(Code::failed_precondition,
                  fmt::format("{} holds checkpoints of an earlier run, up to step "
                              "{}, expected none; resume from them with --resume, or set "
                              "another --checkpoint-dir",
                              options_.checkpoint_dir, *newest));
    }
  }

  // Share s is assigned to the (s mod n)-th of the n live workers.

  std::vector<int> workers() const {
    std::vector<int> workers = coordinator_.worker_indices();
    if (workers.empty()) throw Error(Code::unavailable, "cannot run closures: all workers are dead");
    return workers;
  }
  int owner(std::int64_t share) const {
    const std::vector<int> all = workers();
    return all[static_cast<std::size_t>(share) % all.size()];
  }
  bool is_dead(int worker) const {
    const std::vector<int> all = coordinator_.worker_indices();
    return std::find(all.begin(), all.end(), worker) == all.end();
  }

  /// Runs start(worker) on the share's worker, and again on another worker each time that the worker dies.
  template <class T>
  class RetriedClosure {
   public:
    using Start = std::function<RemoteValue<T>(int worker)>;
    RetriedClosure(const ModelProgram& program, std::int64_t share, Start start)
        : program_(program),
          share_(share),
          start_(std::move(start)),
          worker_(program.owner(share)),
          value_(start_(worker_)) {}
    T fetch() {
      while (true) {
        try {
          return value_.fetch();
        } catch (const Error& error) {
          if (error.code() != Code::aborted || !program_.is_dead(worker_)) throw;
        }
        worker_ = program_.owner(share_);
        value_ = start_(worker_);
      }
    }

   private:
    const ModelProgram& program_;
    std::int64_t share_;
    Start start_;
    int worker_;
    RemoteValue<T> value_;
  };

  template <class T>
  using Results = std::conditional_t<std::is_void_v<T>, void, std::vector<T>>;

  template <class T, class Start>
  Results<T> run_for_each_share(const Start& start) {
    std::vector<RetriedClosure<T>> values;
    for (std::int64_t share = 0; share < shares_; ++share) {
      values.emplace_back(*this, share, [&start, share](int worker) { return start(worker, share); });
    }
    if constexpr (std::is_void_v<T>) {
      for (auto& value : values) value.fetch();
    } else {
      std::vector<T> results;
      for (auto& value : values) results.push_back(value.fetch());
      return results;
    }
  }

  // An epoch

  TrainTask make_task(int epoch, std::vector<std::int64_t> shares) const {
    return {{std::move(shares), shares_},
            report_.data.train,
            epoch,
            options_.batch,
            options_.seed,
            options_.mode};
  }

  void train(int epoch) {
    const auto begin = Clock::now();
    std::vector<TrainResult> results =
        options_.mode == Mode::asynchronous
            ? run_for_each_share<TrainResult>([&](int worker, std::int64_t share) {
                return model_->train(worker, make_task(epoch, {share}));
              })
            : train_synchronized(epoch);
    TrainResult sum;
    for (const TrainResult& result : results) {
      sum.log_loss += result.log_loss;
      sum.penalty += result.penalty;
      sum.examples += result.examples;
    }
    const double seconds = seconds_since(begin);
    report_.seconds += seconds;
    report_.examples += sum.examples;
    const double examples = static_cast<double>(sum.examples);
    report_.epochs.push_back(
        {epoch, (sum.log_loss + sum.penalty) / examples, report_.seconds, examples / seconds, {}});
    coordinator_.scalar("epoch", epoch, report_.data.train * epoch);
    coordinator_.scalar("loss", report_.epochs.back().loss, report_.data.train * epoch);
    progress(epoch, report_.epochs.back().loss);
  }

  /// Schedules one closure per worker, with all of its shares, because workers wait for each other.
  std::vector<TrainResult> train_synchronized(int epoch) {
    model_->restart_group();
    const std::vector<int> all = workers();
    std::map<int, std::vector<std::int64_t>> shares;
    for (std::int64_t share = 0; share < shares_; ++share) {
      shares[all[static_cast<std::size_t>(share) % all.size()]].push_back(share);
    }
    std::vector<std::pair<int, RemoteValue<TrainResult>>> running;
    for (const auto& [worker, assigned] : shares) {
      running.emplace_back(worker, model_->train(worker, make_task(epoch, assigned)));
    }
    std::vector<TrainResult> results;
    for (const auto& [worker, value] : running) {
      try {
        results.push_back(value.fetch());
      } catch (const Error& error) {
        if (error.code() != Code::aborted || !is_dead(worker)) throw;
        hooks_.log(
            fmt::format("worker {} died in epoch {}: the remaining workers continue, and take over its "
                        "examples from the next epoch on",
                        worker, epoch));
      }
    }
    return results;
  }

  void progress(int epoch, double loss) {
    hooks_.progress({std::max(epoch, 1), options_.epochs, report_.data.train * epoch,
                     report_.data.train * options_.epochs, loss});
  }

  // Evaluation

  Metrics evaluate(bool test) {
    const std::int64_t total = test ? report_.data.test : report_.data.train;
    std::vector<RetriedClosure<Scores>> parts;
    for (std::int64_t share = 0; share < shares_; ++share) {
      const std::int64_t size = share_size(total, share, shares_);
      for (std::int64_t first = 0; first < size; first += kEvaluateSlice) {
        const EvaluateTask task{test, share, shares_, first, std::min(kEvaluateSlice, size - first)};
        parts.emplace_back(*this, share, [this, task](int worker) { return model_->evaluate(worker, task); });
      }
    }
    Scores sum;
    for (auto& part : parts) sum.merge(part.fetch());
    return metrics_of(sum);
  }

  void evaluate_epoch() {
    const auto begin = Clock::now();
    ModelEpoch& now = report_.epochs.back();
    now.evaluated = evaluate(report_.data.test > 0);
    report_.evaluation_seconds += seconds_since(begin);
    const std::string data = report_.data.test > 0 ? "test" : "train";
    coordinator_.scalar(data + "/logloss", now.evaluated->log_loss, report_.data.train * now.epoch);
    coordinator_.scalar(data + "/accuracy", now.evaluated->accuracy, report_.data.train * now.epoch);
    hooks_.log(fmt::format("epoch {}: loss {:.6f}  {} {}  {:.0f} examples/s", now.epoch, now.loss,
                           report_.data.test > 0 ? "test" : "train", to_string(*now.evaluated),
                           now.examples_per_second));
  }

  // Checkpoints

  std::string state(int epoch) const {
    nlohmann::json identity = nlohmann::json::object();
    for (const auto& [name, value] : model_->identity()) identity[name] = value;
    return nlohmann::json{{"program", fmt::format("train {}", to_string(options_.program))},
                          {"epoch", epoch},
                          {"identity", identity}}
        .dump();
  }

  void check_state(const std::string& text, const std::string& where) const {
    const auto saved = try_parse_json(text);
    const std::string program = fmt::format("train {}", to_string(options_.program));
    if (!saved.is_object() || saved.value("program", "") != program || !saved.contains("identity")) {
      throw Error(Code::failed_precondition, fmt::format("{} was not saved by `capstan {}`", where, program));
    }
    for (const auto& [name, value] : model_->identity()) {
      // Earlier versions had only float32 tables and did not save their dtype.
      const std::string missing = name == "--table-dtype" ? "float32" : "";
      const std::string saved_value = saved["identity"].value(name, missing);
      if (saved_value == value) continue;
      throw Error(Code::failed_precondition,
                  fmt::format("{} was saved with {} {}, this run has {}; use the same options and data, or "
                              "another --checkpoint-dir",
                              where, name, saved_value, value));
    }
  }

  /// Restores the latest checkpoint; returns the number of epochs that it completes.
  int resume() {
    const auto step = checkpoints_->restore_latest(
        [this](const std::string& state, const std::string& where) { check_state(state, where); });
    if (!step) {
      hooks_.log("no checkpoint in " + options_.checkpoint_dir + ": starting from the beginning");
      return 0;
    }
    report_.resumed_from = checkpoints_->restored_from().string();
    const int epoch =
        parse_json(checkpoints_->user_state(), "the user state", Code::data_loss).value("epoch", 0);
    hooks_.log(fmt::format("resumed from {} after epoch {}", report_.resumed_from, epoch));
    return epoch;
  }

  /// With `background`, the next epoch runs while the checkpoint is written.
  void checkpoint(int epoch, bool background) {
    const auto begin = Clock::now();
    const SaveOptions options{.background = background};
    report_.checkpoint = checkpoints_->save(epoch, state(epoch), options).string();
    report_.checkpoint_seconds += seconds_since(begin);
  }

  ModelOptions options_;
  const ModelHooks& hooks_;
  ParameterServerStrategy strategy_;
  ParameterServerStrategy::Scope scope_;
  ClusterCoordinator coordinator_;
  StopRequest stop_;
  std::int64_t shares_;
  std::optional<CheckpointManager> checkpoints_;
  std::unique_ptr<Model> model_;
  ModelReport report_;
};

}  // namespace

Synchronization synchronization_of(const ModelOptions& options) {
  switch (options.mode) {
    case Mode::stale_synchronous:
      return StaleSynchronous{options.staleness};
    case Mode::synchronous:
      return Synchronous{.average = false};
    case Mode::asynchronous:
      break;
  }
  return Asynchronous{};
}

ModelReport run_model(const Cluster& cluster, const ModelOptions& options, const ModelHooks& hooks) {
  const ModelOptions resolved = after_recovery(cluster, options);
  return ModelProgram(cluster, resolved, hooks).run();
}

std::string to_string(const Metrics& m) {
  const std::string area = std::isnan(m.auc) ? "" : fmt::format("AUC {:.4f}  ", m.auc);
  return fmt::format("logloss {:.6f}  {}accuracy {:.4f}  ({} examples)", m.log_loss, area, m.accuracy,
                     m.examples);
}

}  // namespace capstan::train

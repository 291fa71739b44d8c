// model_program.cpp -- assigns shares to workers, and collects losses and scores.
#include "train/model_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>

#include "capstan/capstan.hpp"
#include "train/after_recovery.hpp"
#include "train/model.hpp"
#include "train/model_results.hpp"
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
  if (deep_model(options.program)) return make_deep_model(options, coordinator);
  switch (options.program) {
    case Program::mlp:
      return make_image_model(options, coordinator);
    case Program::mf:
      return make_factorization_model(options, coordinator);
    default:
      return make_sparse_model(options, coordinator);
  }
}

Selection selection_of(const ModelOptions& options) {
  if (options.program != Program::mf) return {"logloss", false};
  return options.implicit ? Selection{"ndcg@20", true} : Selection{"rmse", false};
}

class ModelRun {
 public:
  ModelRun(const Cluster& cluster, const ModelOptions& options, const RunHooks& hooks)
      : options_(options),
        run_(cluster,
             {fmt::format("train {}", to_string(options.program)), "examples", selection_of(options)},
             options, hooks),
        shares_(run_.coordinator().workers()),
        model_(make_model(options_, run_.coordinator())) {
    for (const DataSizes& part : run_for_each_share<DataSizes>([&](int worker, std::int64_t share) {
           return model_->load(worker, {{share}, shares_});
         })) {
      data_ = part;  // totals of all shares; every worker returns the same
    }
    if (data_.train == 0) {
      throw Error(Code::invalid_argument,
                  fmt::format("--valid-fraction {}: all {} examples validate, expected at least one to train",
                              options_.valid_fraction, data_.valid));
    }
    if (options_.patience > 0 && data_.valid == 0) {
      throw Error(Code::invalid_argument,
                  fmt::format("no validation examples among {} training examples, expected at least one for "
                              "early stopping; set --valid FILE, a larger --valid-fraction, or --epochs N to "
                              "train for a fixed number of epochs",
                              data_.train));
    }
    model_->create(data_);
    if (model_->needs_preparation()) prepare();
  }

  ModelReport run() {
    run_.resume(identity());
    RunReport& report = run_.report();
    const int first = run_.is_complete() ? options_.epochs + 1 : report.first_epoch;
    progress(report.first_epoch - 1, std::numeric_limits<double>::quiet_NaN());
    auto asked = Clock::now();
    for (int epoch = first; epoch <= options_.epochs; ++epoch) {
      train(epoch);
      const bool scheduled = options_.eval_every > 0 && epoch % options_.eval_every == 0;
      if (scheduled || epoch == options_.epochs) evaluate_epoch();
      const bool last = run_.ends_after(epoch);
      // Only complete epochs can be resumed from, so the time left must suffice for another one.
      const auto now = Clock::now();
      report.stopped = run_.stop_reason(std::chrono::ceil<std::chrono::milliseconds>(now - asked));
      asked = now;
      if (!report.stopped.empty()) {
        run_.save_checkpoint(epoch, {{"epoch", epoch}}, false);
        return {.run = report, .data = data_};
      }
      if (run_.checkpoint_is_due(epoch)) run_.save_checkpoint(epoch, {{"epoch", epoch}}, !last);
      if (last) break;
    }
    return evaluate_result();
  }

 private:
  Identity identity() const {
    Identity found = model_->identity();
    // What prepare() counts is part of the checkpoint.
    if (model_->needs_preparation()) {
      found.emplace_back("a number of training examples of", std::to_string(data_.train));
    }
    return found;
  }

  // Share s is assigned to the (s mod n)-th of the n live workers.

  std::vector<int> workers() const {
    std::vector<int> workers = run_.coordinator().worker_indices();
    if (workers.empty()) throw Error(Code::unavailable, "cannot run closures: all workers are dead");
    return workers;
  }
  int owner(std::int64_t share) const {
    const std::vector<int> all = workers();
    return all[static_cast<std::size_t>(share) % all.size()];
  }

  /// Runs start(worker) on the share's worker, and again on another worker each time that the worker dies.
  template <class T>
  class RetriedClosure {
   public:
    using Start = std::function<RemoteValue<T>(int worker)>;
    RetriedClosure(const ModelRun& program, std::int64_t share, Start start)
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
          if (error.code() != Code::aborted) throw;
        }
        // The worker has died; a restarted process may already have its place.
        worker_ = program_.owner(share_);
        value_ = start_(worker_);
      }
    }

   private:
    const ModelRun& program_;
    std::int64_t share_;
    Start start_;
    int worker_;
    RemoteValue<T> value_;
  };

  template <class T, class Start>
  std::vector<T> run_for_each_share(const Start& start) {
    std::vector<RetriedClosure<T>> values;
    for (std::int64_t share = 0; share < shares_; ++share) {
      values.emplace_back(*this, share, [&start, share](int worker) { return start(worker, share); });
    }
    std::vector<T> results;
    for (auto& value : values) results.push_back(value.fetch());
    return results;
  }

  /// In synchronous mode, one share after another: the order of pushes is that of the rows of a dynamic
  /// table.
  void prepare() {
    std::vector<RemoteValue<void>> parts;
    try {
      for (std::int64_t share = 0; share < shares_; ++share) {
        parts.push_back(model_->prepare(owner(share), {{share}, shares_}));
        if (options_.mode == Mode::synchronous) parts.back().fetch();
      }
      for (auto& part : parts) part.fetch();
    } catch (const Error& error) {
      if (error.code() == Code::cancelled) run_.coordinator().join();  // rethrows the error of another share
      throw;
    }
  }

  // An epoch

  TrainTask make_task(int epoch, std::vector<std::int64_t> shares) const {
    return {{std::move(shares), shares_}, data_.train, epoch, options_.batch, options_.seed, options_.mode};
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
    RunReport& report = run_.report();
    report.seconds += seconds_since(begin);
    report.items += sum.examples;
    const auto examples = static_cast<double>(sum.examples);
    report.epochs.push_back({epoch, (sum.log_loss + sum.penalty) / examples, report.seconds});
    run_.coordinator().scalar("epoch", epoch, data_.train * epoch);
    run_.coordinator().scalar("loss", report.epochs.back().loss, data_.train * epoch);
    progress(epoch, report.epochs.back().loss);
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
        if (error.code() != Code::aborted) throw;
        run_.hooks().log(
            fmt::format("worker {} died in epoch {}: the remaining workers continue, and take over its "
                        "examples from the next epoch on",
                        worker, epoch));
      }
    }
    return results;
  }

  void progress(int epoch, double loss) {
    run_.hooks().progress({std::max(epoch, 1), options_.epochs, data_.train * epoch,
                           data_.train * options_.epochs, loss, options_.patience > 0});
  }

  // Evaluation

  Scores score(Part part) {
    std::vector<RetriedClosure<Scores>> parts;
    for (std::int64_t share = 0; share < shares_; ++share) {
      const std::int64_t size = share_size(data_.of(part), share, shares_);
      for (std::int64_t first = 0; first < size; first += kEvaluateSlice) {
        const EvaluateTask task{part, share, shares_, first, std::min(kEvaluateSlice, size - first)};
        parts.emplace_back(*this, share, [this, task](int worker) { return model_->evaluate(worker, task); });
      }
    }
    Scores sum;
    for (auto& part_of_scores : parts) sum.merge(part_of_scores.fetch());
    return sum;
  }

  /// Evaluates the validation data; without any, the test data or else the training data.
  void evaluate_epoch() {
    const auto begin = Clock::now();
    const Part part = data_.valid > 0 ? Part::valid : data_.test > 0 ? Part::test : Part::train;
    const Evaluation found = model_->evaluation_of(score(part));
    run_.add_evaluation(found, part, seconds_since(begin), data_.train * run_.report().epochs.back().epoch);
  }

  ModelReport evaluate_result() {
    const auto begin = Clock::now();
    ModelReport report{.data = data_};
    const Scores train = score(Part::train);
    report.train = model_->evaluation_of(train);
    report.data.width = model_->learned_features().value_or(data_.width);
    report.objective = model_->mean_loss(train) + model_->penalty();
    if (data_.valid > 0) report.valid = model_->evaluation_of(score(Part::valid));
    if (data_.test > 0) report.test = model_->evaluation_of(score(Part::test));
    report.run = run_.report();
    report.run.evaluation_seconds += seconds_since(begin);
    report.run.workers_lost = std::max(0, static_cast<int>(shares_) - run_.coordinator().workers());
    return report;
  }

  ModelOptions options_;
  TrainingRun run_;
  std::int64_t shares_;
  std::unique_ptr<Model> model_;
  DataSizes data_;
};

class ModelProgram final : public TrainingProgram {
 public:
  explicit ModelProgram(ModelOptions options) : options_(std::move(options)) {}
  const RunOptions& options() const override { return options_; }
  std::string_view unit() const override { return "examples"; }
  Results run(const Cluster& cluster, const RunHooks& hooks) const override {
    ModelRun run(cluster, after_recovery(cluster, options_), hooks);
    return results_of(options_, run.run());
  }

 private:
  ModelOptions options_;
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

std::unique_ptr<TrainingProgram> make_model_program(const ModelOptions& options) {
  return std::make_unique<ModelProgram>(options);
}

}  // namespace capstan::train

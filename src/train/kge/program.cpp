// program.cpp -- schedules slices, and collects losses and ranks.
#include "train/kge/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <memory>
#include <optional>

#include "io/data/graph.hpp"
#include "train/after_recovery.hpp"
#include "train/best_values.hpp"
#include "train/counter_rng.hpp"
#include "train/kge/known_graph.hpp"
#include "train/kge/learned_relations.hpp"
#include "train/kge/predict.hpp"
#include "train/kge/results.hpp"
#include "train/kge/slice.hpp"
#include "train/kge/table.hpp"
#include "train/kge/variables.hpp"
#include "train/saved_names.hpp"
#include "train/training_run.hpp"

namespace capstan::kge {
namespace {

using Clock = std::chrono::steady_clock;

/// Held-out triples ranked by one closure. Amortizes a pass over the entity table or, on a GPU, the cost of a
/// call.
constexpr std::size_t kRankSlice = 128;
constexpr std::size_t kRankSliceOnGpu = 1024;

/// Number of relations that predictions are drawn from: enough for variety, and only the best.
constexpr std::size_t kPredictedRelations = 3;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void check_unseen(const io::Graph& graph, bool refuse, const train::RunHooks& hooks) {
  const io::Unseen& unseen = graph.unseen;
  if (unseen.entities + unseen.relations == 0) return;
  const std::string text = fmt::format(
      "{} held-out triples have one of {} entities or {} relations that are not in train.txt, such as {}",
      unseen.triples, unseen.entities, unseen.relations,
      unseen.entity_example.empty() ? unseen.relation_example : unseen.entity_example);
  if (refuse) throw Error(Code::invalid_argument, text + "; remove them, or use --unseen keep");
  hooks.log("note: " + text +
            "; they stay untrained and count in the evaluation (--unseen error rejects them)");
}

/// Minimum interval between scalars; short epochs would otherwise flood the log.
constexpr std::chrono::milliseconds kScalarInterval{100};
/// A worker keeps about (256 + 2 dim) floats per negative: 84 MB with the default dim of distmult.
constexpr std::int64_t kMostSearchedNegatives = 16384;

class KgeRun {
 public:
  KgeRun(const Cluster& cluster, const ProgramOptions& options, const train::RunHooks& hooks)
      : options_(options),
        run_(cluster, {"train kge", "triples", {"mrr", true}}, options, hooks),
        coordinator_(run_.coordinator()),
        graph_(load_graph(options.data)) {
    check_unseen(graph_, options.refuse_unseen, hooks);
    if (options_.patience > 0 && graph_.valid.empty()) {
      throw Error(Code::invalid_argument,
                  fmt::format("{}: {} has no validation triples, expected at least one",
                              options_.auto_search.enabled ? "--auto" : "--patience", options_.data));
    }
    const auto entities = static_cast<std::int64_t>(graph_.entities.size());
    const auto relations = static_cast<std::int64_t>(graph_.relations.size());
    const VariableOptions optimizer{options_.optimizer};
    const ModelDefaults& defaults = defaults_of(options_.model);
    entities_.emplace(options_.tables, kEntityRows, Shape{entities, options_.dim},
                      initializers::normal(0, double{defaults.initial_stddev}, options_.seed), optimizer);
    relations_.emplace(
        options_.tables, kRelationRows, Shape{2 * relations, relation_width(options_.model, options_.dim)},
        initializers::normal(0, double{defaults.initial_relation_stddev}, options_.seed + 1), optimizer);
    entity_names_.emplace(kEntityNames, graph_.entities);
    relation_names_.emplace(kRelationNames, graph_.relations);
    workers_ = coordinator_.workers();
    evaluator_.emplace(coordinator_.create_per_worker_resource<&make_evaluator>(
        options_.data, RankerOptions{options_.model, options_.dim, entities, relations}, options_.on_gpu));
    report_.entities = entities;
    report_.relations = relations;
    report_.train = static_cast<std::int64_t>(graph_.train.size());
    report_.valid = static_cast<std::int64_t>(graph_.valid.size());
    report_.test = static_cast<std::int64_t>(graph_.test.size());
    report_.random_mrr = mrr_of_random_guessing(entities);
    const TrialSettings first{options_.optimizer.learning_rate, options_.n3, options_.margin,
                              static_cast<double>(options_.negatives)};
    use(first);
    const AutoOptions& search = options_.auto_search;
    if (!search.enabled) return;
    std::vector<SearchedSetting> searched = search.searched;
    for (SearchedSetting& one : searched) {
      if (one.value == &TrialSettings::negatives)
        one.largest = static_cast<double>(std::min(entities, kMostSearchedNegatives));
    }
    search_.emplace(first, std::move(searched), std::chrono::duration<double>(search.time).count());
    initial_values_.emplace(run_.strategy(), options_, hooks.log, "initial");
  }

  Report run() {
    const nlohmann::json from = run_.resume(identity());
    train::RunReport& report = run_.report();
    if (!report.resumed_from.empty()) {
      entity_names_->check_restored(graph_.entities, report.resumed_from);
      relation_names_->check_restored(graph_.relations, report.resumed_from);
    }
    if (search_) resume_search(from.value("auto", nlohmann::json::object()));
    const int first = run_.is_complete() ? options_.epochs + 1 : report.first_epoch;
    const std::int64_t begun = begun_triples(from);
    resumed_triples_ = report_.train * (report.first_epoch - 1) + begun;
    run_.hooks().progress({report.first_epoch, options_.epochs, resumed_triples_, total_triples(),
                           std::numeric_limits<double>::quiet_NaN(), options_.patience > 0});
    training_since_ = Clock::now();
    for (int epoch = first; epoch <= options_.epochs; ++epoch) {
      if (is_trial() && epoch == first_epoch_of_trial() && (epoch > first || begun == 0)) begin_trial();
      const std::int64_t up_to = schedule_epoch(epoch, epoch == first ? begun : 0);
      const bool stopped = !report.stopped.empty();
      if (stopped && up_to < report_.train) {
        wait_for_slices();
        // The step is that of the incomplete epoch. Its checkpoint is replaced when the epoch completes.
        run_.save_checkpoint(epoch, progress({{"epoch", epoch - 1}, {"begun", up_to}}), false);
        return finished();
      }
      const bool evaluate = is_trial() ? is_end_of_trial(epoch) : is_evaluated(epoch);
      const bool due = run_.checkpoint_is_due(epoch) || stopped || epoch == options_.epochs;
      if (!evaluate && !due) continue;
      wait_for_slices();
      if (evaluate && is_trial()) {
        end_trial(epoch);
      } else if (evaluate) {
        evaluate_valid();
      }
      const bool last = !is_trial() && run_.ends_after(epoch, is_out_of_time());
      if (stopped) {
        run_.save_checkpoint(epoch, progress({{"epoch", epoch}}), false);
        return finished();
      }
      // The next epoch runs while the checkpoint is written.
      if (run_.checkpoint_is_due(epoch)) run_.save_checkpoint(epoch, progress({{"epoch", epoch}}), !last);
      if (last) break;
      training_since_ = Clock::now();
    }
    const auto begin = Clock::now();
    report_.result = rank(to_triples(graph_.test));
    coordinator_.scalar("test/mrr", report_.result.mrr(), triples_seen());
    if (options_.predictions > 0) predict();
    report.evaluation_seconds += seconds_since(begin);
    report.workers_lost = std::max(0, workers_ - coordinator_.workers());  // some may have joined late
    return finished();
  }

 private:
  Report finished() {
    report_.run = run_.report();
    report_.chosen = used_;
    if (search_) report_.auto_search = search_->to_json();
    return std::move(report_);
  }

  /// Trains by these settings from here on.
  void use(const TrialSettings& settings) {
    used_ = settings;
    trainer_.emplace(coordinator_.create_per_worker_resource<&make_trainer>(TrainerOptions{
        {options_.model, options_.dim, static_cast<int>(settings.negatives), static_cast<float>(settings.n3),
         report_.entities, report_.relations, static_cast<float>(settings.margin)},
        options_.on_gpu,
        options_.looks_ahead}));
  }

  /// After a restore, which sets the rate that was saved, or that of the first trial.
  void set_learning_rate() {
    const auto set = [&](const auto& table) { table.set_learning_rate(used_.learning_rate); };
    entities_->visit(set);
    relations_->visit(set);
  }

  /// Returns true during the search of --auto.
  bool is_trial() const noexcept { return search_ && !search_->done(); }
  int first_epoch_of_trial() const {
    return static_cast<int>(search_->trials().size()) * options_.auto_search.trial_epochs + 1;
  }
  bool is_end_of_trial(int epoch) const {
    return epoch == first_epoch_of_trial() + options_.auto_search.trial_epochs - 1;
  }
  bool is_evaluated(int epoch) const {
    if (options_.patience > 0 && epoch == options_.epochs) return true;
    return options_.eval_every > 0 && epoch % options_.eval_every == 0 && !graph_.valid.empty();
  }

  /// Restores the initial values. The first trial saves them.
  void begin_trial() {
    if (search_->trials().empty()) {
      initial_values_->keep(0, "{}");
      return;
    }
    if (!initial_values_->restore(0)) {
      search_->finish();
      continue_from_best(first_epoch_of_trial() - 1);
      return;
    }
    use(search_->next());
    set_learning_rate();
  }

  /// Evaluates a trial. Its values are kept if it is the best one.
  void end_trial(int epoch) {
    const auto begin = Clock::now();
    const Metrics found = rank(to_triples(graph_.valid));
    const bool is_best = search_->record(found.mrr(), auto_seconds() - search_->seconds());
    run_.add_evaluation(evaluation_of(found), train::Part::valid, seconds_since(begin), triples_seen(),
                        is_best);
    run_.hooks().log(search_->table().back());
    if (search_->done()) continue_from_best(epoch);
  }

  /// Ends the search: trains on from its best values, by their settings.
  void continue_from_best(int epoch) {
    run_.continue_from_best(epoch);
    initial_values_->discard();
    use(search_->best());
    set_learning_rate();
    run_.hooks().log("settings chosen by the validation MRR:");
    for (const std::string& line : search_->table()) run_.hooks().log(line);
  }

  /// Seconds since the run began, including those of the runs that it resumes.
  double auto_seconds() const { return earlier_seconds_ + seconds_since(began_); }
  bool is_out_of_time() const {
    return search_ && auto_seconds() >= std::chrono::duration<double>(options_.auto_search.time).count();
  }

  void resume_search(const nlohmann::json& state) {
    search_->restore(state);
    const int saved = state.value("trial_epochs", 0), expected = options_.auto_search.trial_epochs;
    if (!state.empty() && !search_->done() && saved != expected) {
      throw Error(Code::failed_precondition,
                  fmt::format("--resume: the checkpoint is of a search by {}, expected trials of {} epochs; "
                              "train again in another --checkpoint-dir",
                              saved == 0 ? "an earlier version" : fmt::format("trials of {} epochs", saved),
                              expected));
    }
    earlier_seconds_ = state.value("seconds", 0.0);
    use(search_->done() ? search_->best() : search_->next());
  }

  /// The progress of a checkpoint, with the state of the search.
  nlohmann::json progress(nlohmann::json progress) const {
    if (!search_) return progress;
    progress["auto"] = search_->state();
    progress["auto"]["seconds"] = auto_seconds();
    progress["auto"]["trial_epochs"] = options_.auto_search.trial_epochs;
    return progress;
  }

  train::Identity identity() const {
    return {{"--model", std::string(to_string(options_.model))},
            {"--dim", std::to_string(options_.dim)},
            {"--table-dtype", std::string(options_.tables.name())},
            {"a number of entities of", std::to_string(report_.entities)},
            {"a number of relations of", std::to_string(report_.relations)}};
  }

  /// Trained triples of the epoch that the checkpoint interrupted, in its order.
  std::int64_t begun_triples(const nlohmann::json& state) const {
    const std::int64_t begun = state.value("begun", std::int64_t{0});
    return std::clamp<std::int64_t>(
        begun, 0, std::max<std::int64_t>(report_.train - 1, 0));  // train.txt may have changed
  }

  /// The order depends only on the seed and the epoch, so a resumed run repeats it.
  std::vector<Triple> shuffled(int epoch) const {
    std::vector<Triple> triples = to_triples(graph_.train);
    // Complemented, so that the stream differs from those of the negatives.
    const train::CounterRng random(~options_.seed, static_cast<std::uint64_t>(epoch));
    for (std::size_t i = triples.size() - 1; i > 0; --i)
      std::swap(triples[i], triples[random.below(i + 1, i)]);
    return triples;
  }

  /// Schedules the triples of an epoch from index `from` to its end, or until the training has to stop
  /// (RunReport::stopped). Returns the end of the scheduled triples.
  std::int64_t schedule_epoch(int epoch, std::int64_t from) {
    const std::vector<Triple> triples = shuffled(epoch);
    const auto batch = static_cast<std::size_t>(options_.batch);
    const std::size_t slice = batch * static_cast<std::size_t>(options_.slice_batches);
    const std::size_t batches = (triples.size() + batch - 1) / batch;
    // Enough slices that no worker runs idle, few enough that the triples of an epoch do not pile up here.
    const auto window = static_cast<std::size_t>(4 * std::max(1, coordinator_.workers()));
    for (auto first = static_cast<std::size_t>(from); first < triples.size(); first += slice) {
      const std::size_t end = std::min(first + slice, triples.size());
      const auto begin = triples.begin() + static_cast<std::ptrdiff_t>(first);
      Slice work{{begin, begin + static_cast<std::ptrdiff_t>(end - first)},
                 options_.batch,
                 options_.seed,
                 static_cast<std::uint64_t>(epoch - 1) * batches + first / batch};
      running_.push_back(
          {epoch, coordinator_.schedule<&train_slice>(*trainer_, std::move(work), *entities_, *relations_)});
      collect(window);
      run_.report().stopped = run_.stop_reason(std::chrono::milliseconds(0));
      if (!run_.report().stopped.empty()) return static_cast<std::int64_t>(end);
    }
    return report_.train;
  }

  void wait_for_slices() {
    collect(0);
    coordinator_.join();
    run_.report().seconds += seconds_since(training_since_);
  }

  /// Fetches a result. If the slice was cancelled because another one failed, join() rethrows that error,
  /// which determines the message and the exit code.
  SliceResult fetch_result(const RemoteValue<SliceResult>& value) {
    try {
      return value.fetch();
    } catch (const Error& error) {
      if (error.code() == Code::cancelled) coordinator_.join();
      throw;
    }
  }

  /// Trained triples over all epochs.
  std::int64_t triples_seen() { return resumed_triples_ + run_.report().items; }

  /// Triples to train over all epochs; with --auto, an estimate from the time.
  std::int64_t total_triples() {
    const std::int64_t all = report_.train * options_.epochs;
    const double used = auto_seconds();
    if (!search_ || triples_seen() == 0 || used <= 0) return all;
    const double time = std::chrono::duration<double>(options_.auto_search.time).count();
    const double estimate = static_cast<double>(triples_seen()) * std::max(1.0, time / used);
    return static_cast<std::int64_t>(std::min(estimate, static_cast<double>(all)));
  }

  void report_scalars(int epoch, double loss) {
    scalars_reported_ = Clock::now();
    coordinator_.scalar("epoch", epoch, triples_seen());
    coordinator_.scalar("loss", loss, triples_seen());
  }

  /// Collects results until at most `left` slices are outstanding.
  void collect(std::size_t left) {
    while (running_.size() > left) {
      const auto [epoch, value] = running_.front();
      const SliceResult result = fetch_result(value);
      running_.pop_front();
      train::RunReport& report = run_.report();
      report.items += result.triples;
      if (report.epochs.empty() || report.epochs.back().epoch != epoch) {
        report.epochs.push_back({epoch});
        epoch_ = {};
      }
      epoch_.loss_sum += result.loss_sum;
      epoch_.queries += result.queries;
      train::EpochReport& now = report.epochs.back();
      now.loss = epoch_.loss_sum / static_cast<double>(epoch_.queries);
      now.seconds = report.seconds + seconds_since(training_since_);
      const double loss = result.loss_sum / static_cast<double>(result.queries);
      if (running_.empty() || Clock::now() >= scalars_reported_ + kScalarInterval)
        report_scalars(epoch, loss);
      run_.hooks().progress(
          {epoch, options_.epochs, triples_seen(), total_triples(), loss, options_.patience > 0});
    }
  }

  Metrics rank(const std::vector<Triple>& triples) {
    const std::size_t slice = options_.on_gpu ? kRankSliceOnGpu : kRankSlice;
    std::vector<std::vector<Triple>> slices;
    for (std::size_t first = 0; first < triples.size(); first += slice) {
      const auto begin = triples.begin() + static_cast<std::ptrdiff_t>(first);
      const auto end = triples.begin() + static_cast<std::ptrdiff_t>(std::min(first + slice, triples.size()));
      slices.emplace_back(begin, end);
    }
    Metrics total;
    for (const Metrics& part : rank_slices(std::move(slices))) total.merge(part);
    return total;
  }

  /// Runs one evaluation; returns the metrics of each slice.
  std::vector<Metrics> rank_slices(std::vector<std::vector<Triple>> slices) {
    ++evaluations_;
    std::vector<RemoteValue<Metrics>> parts;
    for (std::vector<Triple>& slice : slices) {
      parts.push_back(coordinator_.schedule<&rank_slice>(*evaluator_, evaluations_, std::move(slice),
                                                         *entities_, *relations_));
    }
    coordinator_.join();
    if (options_.on_gpu) coordinator_.run_on_every_worker<&end_evaluation>(*evaluator_);
    std::vector<Metrics> metrics;
    for (const auto& part : parts) metrics.push_back(part.fetch());
    return metrics;
  }

  /// Predicts tails of test triples. The relations are selected by validation triples; selection by test
  /// triples would bias the predictions.
  void predict() {
    const std::vector<Triple> test = to_triples(graph_.test);
    std::vector<RelationMetrics> compared;
    std::vector<std::vector<Triple>> slices;
    for (auto& [relation, triples] : sample_relations(to_triples(graph_.valid), test, options_.seed)) {
      compared.push_back({relation, {}});
      slices.push_back(std::move(triples));
    }
    const std::vector<Metrics> metrics = rank_slices(std::move(slices));
    for (std::size_t i = 0; i < compared.size(); ++i) compared[i].metrics = metrics[i];
    const std::vector<RelationMetrics> best = best_relations(compared, kPredictedRelations);
    report_.compared_relations = static_cast<int>(compared.size());
    for (const RelationMetrics& one : best) {
      report_.predicted_relations.push_back(
          {graph_.relations[static_cast<std::size_t>(one.relation)], one.metrics.tails_mrr()});
    }
    report_.predictions = predict_tails(
        graph_, draw_triples(test, best, static_cast<std::size_t>(options_.predictions), options_.seed),
        *entities_, *relations_, options_.model);
  }

  void evaluate_valid() {
    const auto begin = Clock::now();
    const Metrics found = rank(to_triples(graph_.valid));
    run_.add_evaluation(evaluation_of(found), train::Part::valid, seconds_since(begin), triples_seen());
  }

  struct Running {
    int epoch;
    RemoteValue<SliceResult> value;
  };

  ProgramOptions options_;
  train::TrainingRun run_;
  ClusterCoordinator& coordinator_;
  io::Graph graph_;
  std::optional<Table> entities_;
  std::optional<Table> relations_;
  std::optional<train::SavedNames> entity_names_;
  std::optional<train::SavedNames> relation_names_;
  std::optional<PerWorker<std::unique_ptr<Trainer>>> trainer_;
  std::optional<PerWorker<std::unique_ptr<Evaluator>>> evaluator_;
  std::deque<Running> running_;
  Clock::time_point training_since_;
  std::int64_t resumed_triples_ = 0;    // triples trained by an earlier run
  Clock::time_point scalars_reported_;  // time of the last scalars
  SliceResult epoch_;                   // sums over the epoch of the last result
  std::int64_t evaluations_ = 0;
  TrialSettings used_;
  std::optional<AutoSearch> search_;  // of --auto
  std::optional<train::BestValues> initial_values_;
  Clock::time_point began_ = Clock::now();
  double earlier_seconds_ = 0;
  int workers_ = 0;
  Report report_;
};

class KgeProgram final : public train::TrainingProgram {
 public:
  explicit KgeProgram(ProgramOptions options) : options_(std::move(options)) {}
  const train::RunOptions& options() const override { return options_; }
  std::string_view unit() const override { return "triples"; }
  train::Results run(const Cluster& cluster, const train::RunHooks& hooks) const override {
    return results_of(options_, run_program(cluster, options_, hooks));
  }

 private:
  ProgramOptions options_;
};

}  // namespace

Report run_program(const Cluster& cluster, const ProgramOptions& options, const train::RunHooks& hooks) {
  return KgeRun(cluster, after_recovery(cluster, options), hooks).run();
}

std::unique_ptr<train::TrainingProgram> make_kge_program(const ProgramOptions& options) {
  return std::make_unique<KgeProgram>(options);
}

}  // namespace capstan::kge

// program.cpp -- schedules slices, collects losses and ranks, saves checkpoints.
#include "train/kge/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>

#include "base/json.hpp"
#include "io/data/graph.hpp"
#include "train/after_recovery.hpp"
#include "train/counter_rng.hpp"
#include "train/kge/known_graph.hpp"
#include "train/kge/learned_relations.hpp"
#include "train/kge/predict.hpp"
#include "train/kge/slice.hpp"
#include "train/kge/table.hpp"

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

void check_unseen(const io::Graph& graph, bool refuse, const ProgramHooks& hooks) {
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

/// User state of a checkpoint.
struct State {
  int epoch = 0;           // complete epochs
  std::int64_t begun = 0;  // trained triples of the next epoch, in its order
  std::string model;
  int dim = 0;
  std::int64_t entities = 0;
  std::int64_t relations = 0;
  std::string table_dtype;

  std::string to_json() const {
    nlohmann::json json{{"program", "train kge"},
                        {"epoch", epoch},
                        {"model", model},
                        {"dim", dim},
                        {"entities", entities},
                        {"relations", relations},
                        {"table_dtype", table_dtype}};
    if (begun > 0) json["begun"] = begun;
    return json.dump();
  }
  static State from_json(const std::string& text, const std::string& where) {
    try {
      const auto json = try_parse_json(text);
      return {json.at("epoch"),
              json.value("begun", std::int64_t{0}),
              json.at("model"),
              json.at("dim"),
              json.at("entities"),
              json.at("relations"),
              json.value("table_dtype", "float32")};
    } catch (const nlohmann::json::exception&) {
      throw Error(Code::failed_precondition, where + " was not saved by `capstan train kge`");
    }
  }
};

/// Minimum interval between scalars; short epochs would otherwise flood the log.
constexpr std::chrono::milliseconds kScalarInterval{100};

class Program {
 public:
  Program(const Cluster& cluster, const ProgramOptions& options, const ProgramHooks& hooks)
      : options_(options),
        hooks_(hooks),
        strategy_(cluster, {.variable_partitioner = FixedShardsPartitioner{cluster.count(Role::ps)},
                            .memory = options.memory,
                            .communication_dtype = options.communication_dtype,
                            .int8_lookups = options.int8_lookups}),
        scope_(strategy_.scope()),
        stop_(options.stop, !options.checkpoint_dir.empty()),
        graph_(load_graph(options.data)) {
    check_unseen(graph_, options.refuse_unseen, hooks);
    if (!options_.checkpoint_dir.empty()) {
      checkpoints_.emplace(strategy_, CheckpointOptions{options_.checkpoint_dir, options_.max_to_keep,
                                                        options_.settings_json});
      if (const auto newest = checkpoints_->latest(); newest && !options_.resume) {
        throw Error(Code::failed_precondition,
                    fmt::format("{} holds checkpoints of an earlier run, up to "
                                "step {}, expected none; resume from them with --resume, or set "
                                "another --checkpoint-dir",
                                options_.checkpoint_dir, *newest));
      }
    }
    const auto entities = static_cast<std::int64_t>(graph_.entities.size());
    const auto relations = static_cast<std::int64_t>(graph_.relations.size());
    const VariableOptions optimizer{options_.optimizer};
    const double stddev = static_cast<double>(defaults_of(options_.model).initial_stddev);
    entities_.emplace(options_.tables, "entities", Shape{entities, options_.dim},
                      initializers::normal(0, stddev, options_.seed), optimizer);
    relations_.emplace(options_.tables, "relations", Shape{2 * relations, options_.dim},
                       initializers::normal(0, stddev, options_.seed + 1), optimizer);
    coordinator_.emplace(strategy_);
    workers_ = coordinator_->workers();
    trainer_.emplace(coordinator_->create_per_worker_resource<&make_trainer>(
        TrainerOptions{{options_.model, options_.dim, options_.negatives, options_.n3, entities, relations},
                       options_.on_gpu,
                       options_.looks_ahead}));
    evaluator_.emplace(coordinator_->create_per_worker_resource<&make_evaluator>(
        options_.data, RankerOptions{options_.model, options_.dim, entities, relations}, options_.on_gpu));
    report_.entities = entities;
    report_.relations = relations;
    report_.train = static_cast<std::int64_t>(graph_.train.size());
    report_.valid = static_cast<std::int64_t>(graph_.valid.size());
    report_.test = static_cast<std::int64_t>(graph_.test.size());
    report_.random_mrr = mrr_of_random_guessing(entities);
  }

  Report run() {
    const State from = options_.resume ? resume() : State{};
    const int done = from.epoch;
    report_.first_epoch = done + 1;
    resumed_triples_ = report_.train * done + from.begun;
    hooks_.progress({done + 1, options_.epochs, resumed_triples_, report_.train * options_.epochs,
                     std::numeric_limits<double>::quiet_NaN()});
    training_since_ = Clock::now();
    for (int epoch = done + 1; epoch <= options_.epochs; ++epoch) {
      const std::int64_t up_to = schedule_epoch(epoch, epoch == done + 1 ? from.begun : 0);
      if (!report_.stopped.empty()) {
        stop(epoch, up_to);
        return std::move(report_);
      }
      const bool last = epoch == options_.epochs;
      const bool save = checkpoints_ && (last || epoch % options_.checkpoint_every == 0);
      const bool evaluate =
          options_.eval_every > 0 && epoch % options_.eval_every == 0 && !graph_.valid.empty();
      if (last || save || evaluate) {
        collect(0);
        coordinator_->join();
        report_.seconds += seconds_since(training_since_);
        if (evaluate) evaluate_valid(epoch);
        // The next epoch runs while the checkpoint is written.
        if (save) checkpoint(epoch, state(epoch), {.background = !last});
        training_since_ = Clock::now();
      }
    }
    const auto begin = Clock::now();
    report_.result = rank(to_triples(graph_.test));
    coordinator_->scalar("test/mrr", report_.result.mrr(), triples_seen());
    if (options_.predictions > 0) predict();
    report_.evaluation_seconds += seconds_since(begin);
    report_.workers_lost = std::max(0, workers_ - coordinator_->workers());  // some may have joined late
    return std::move(report_);
  }

 private:
  State state(int epoch, std::int64_t begun = 0) const {
    return {epoch,
            begun,
            std::string(to_string(options_.model)),
            options_.dim,
            report_.entities,
            report_.relations,
            std::string(options_.tables.name())};
  }

  /// Restores the latest checkpoint; returns its state, or an empty one if there is none.
  State resume() {
    const auto step = checkpoints_->restore_latest([this](const std::string& user_state,
                                                          const std::string& where) {
      const State saved = State::from_json(user_state, where);
      const State current = state(0);
      const auto differs = [&](const char* name, const auto& saved_value, const auto& value) {
        if (saved_value == value) return;
        throw Error(Code::failed_precondition, fmt::format("{} was saved with {} {}, this run has {}; use "
                                                           "the same options, or another --checkpoint-dir",
                                                           where, name, saved_value, value));
      };
      differs("--model", saved.model, current.model);
      differs("--dim", saved.dim, current.dim);
      differs("--table-dtype", saved.table_dtype, current.table_dtype);
      differs("a number of entities of", saved.entities, current.entities);
      differs("a number of relations of", saved.relations, current.relations);
    });
    if (!step) {
      hooks_.log("no checkpoint in " + options_.checkpoint_dir + ": starting from the beginning");
      return {};
    }
    report_.resumed_from = checkpoints_->restored_from().string();
    State saved = State::from_json(checkpoints_->user_state(), report_.resumed_from);
    saved.begun = std::clamp<std::int64_t>(saved.begun, 0, report_.train - 1);  // train.txt may have changed
    const std::string begun = saved.begun > 0 ? fmt::format(" and {} triples", saved.begun) : "";
    hooks_.log(fmt::format("resumed from {} after epoch {}{}", report_.resumed_from, saved.epoch, begun));
    return saved;
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
  /// (report_.stopped). Returns the end of the scheduled triples.
  std::int64_t schedule_epoch(int epoch, std::int64_t from) {
    const std::vector<Triple> triples = shuffled(epoch);
    const auto batch = static_cast<std::size_t>(options_.batch);
    const std::size_t slice = batch * static_cast<std::size_t>(options_.slice_batches);
    const std::size_t batches = (triples.size() + batch - 1) / batch;
    // Enough slices that no worker runs idle, few enough that the triples of an epoch do not pile up here.
    const auto window = static_cast<std::size_t>(4 * std::max(1, coordinator_->workers()));
    for (auto first = static_cast<std::size_t>(from); first < triples.size(); first += slice) {
      const std::size_t end = std::min(first + slice, triples.size());
      const auto begin = triples.begin() + static_cast<std::ptrdiff_t>(first);
      Slice work{{begin, begin + static_cast<std::ptrdiff_t>(end - first)},
                 options_.batch,
                 options_.seed,
                 static_cast<std::uint64_t>(epoch - 1) * batches + first / batch};
      running_.push_back(
          {epoch, coordinator_->schedule<&train_slice>(*trainer_, std::move(work), *entities_, *relations_)});
      collect(window);
      report_.stopped = stop_.reason(std::chrono::milliseconds(0));
      if (!report_.stopped.empty()) return static_cast<std::int64_t>(end);
    }
    return report_.train;
  }

  /// Saves an epoch up to triple `up_to`. The step of the checkpoint is the number of the epoch, also of an
  /// incomplete one, whose checkpoint is replaced when the epoch completes.
  void stop(int epoch, std::int64_t up_to) {
    collect(0);
    coordinator_->join();
    report_.seconds += seconds_since(training_since_);
    checkpoint(epoch, up_to == report_.train ? state(epoch) : state(epoch - 1, up_to), {});
  }

  /// Fetches a result. If the slice was cancelled because another one failed, join() rethrows that error,
  /// which determines the message and the exit code.
  SliceResult fetch_result(const RemoteValue<SliceResult>& value) {
    try {
      return value.fetch();
    } catch (const Error& error) {
      if (error.code() == Code::cancelled) coordinator_->join();
      throw;
    }
  }

  /// Trained triples over all epochs.
  std::int64_t triples_seen() const { return resumed_triples_ + report_.triples; }

  void report_scalars(int epoch, double loss) {
    scalars_reported_ = Clock::now();
    coordinator_->scalar("epoch", epoch, triples_seen());
    coordinator_->scalar("loss", loss, triples_seen());
  }

  /// Collects results until at most `left` slices are outstanding.
  void collect(std::size_t left) {
    while (running_.size() > left) {
      const auto [epoch, value] = running_.front();
      const SliceResult result = fetch_result(value);
      running_.pop_front();
      report_.triples += result.triples;
      if (report_.epochs.empty() || report_.epochs.back().epoch != epoch) {
        report_.epochs.push_back({});
        report_.epochs.back().epoch = epoch;
        loss_sum_ = 0;
        queries_ = 0;
      }
      loss_sum_ += result.loss_sum;
      queries_ += result.queries;
      EpochReport& now = report_.epochs.back();
      now.loss = loss_sum_ / static_cast<double>(queries_);
      now.seconds = report_.seconds + seconds_since(training_since_);
      const double loss = result.loss_sum / static_cast<double>(result.queries);
      if (running_.empty() || Clock::now() >= scalars_reported_ + kScalarInterval)
        report_scalars(epoch, loss);
      hooks_.progress({epoch, options_.epochs, triples_seen(), report_.train * options_.epochs, loss});
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
      parts.push_back(coordinator_->schedule<&rank_slice>(*evaluator_, evaluations_, std::move(slice),
                                                          *entities_, *relations_));
    }
    coordinator_->join();
    if (options_.on_gpu) coordinator_->run_on_every_worker<&end_evaluation>(*evaluator_);
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

  void evaluate_valid(int epoch) {
    const auto begin = Clock::now();
    EpochReport& now = report_.epochs.back();
    now.valid = rank(to_triples(graph_.valid));
    now.evaluated = true;
    report_.evaluation_seconds += seconds_since(begin);
    coordinator_->scalar("valid/mrr", now.valid.mrr(), triples_seen());
    coordinator_->scalar("valid/hits10", now.valid.hits10(), triples_seen());
    hooks_.log(fmt::format("epoch {}: valid MRR {:.4f}, Hits@10 {:.4f}", epoch, now.valid.mrr(),
                           now.valid.hits10()));
  }

  void checkpoint(int epoch, const State& saved_state, const SaveOptions& options) {
    const auto begin = Clock::now();
    report_.checkpoint = checkpoints_->save(epoch, saved_state.to_json(), options).string();
    report_.checkpoint_seconds += seconds_since(begin);
  }

  struct Running {
    int epoch;
    RemoteValue<SliceResult> value;
  };

  ProgramOptions options_;
  const ProgramHooks& hooks_;
  // First, because its destructor ends the job on the other ranks, also if reading the data throws.
  ParameterServerStrategy strategy_;
  ParameterServerStrategy::Scope scope_;
  train::StopRequest stop_;
  io::Graph graph_;
  std::optional<CheckpointManager> checkpoints_;
  std::optional<Table> entities_;
  std::optional<Table> relations_;
  std::optional<ClusterCoordinator> coordinator_;
  std::optional<PerWorker<std::unique_ptr<Trainer>>> trainer_;
  std::optional<PerWorker<std::unique_ptr<Evaluator>>> evaluator_;
  std::deque<Running> running_;
  Clock::time_point training_since_;
  std::int64_t resumed_triples_ = 0;    // triples trained by an earlier run
  Clock::time_point scalars_reported_;  // time of the last scalars
  double loss_sum_ = 0;
  std::int64_t queries_ = 0;
  std::int64_t evaluations_ = 0;
  int workers_ = 0;
  Report report_;
};

}  // namespace

Report run_program(const Cluster& cluster, const ProgramOptions& options, const ProgramHooks& hooks) {
  const ProgramOptions resolved = after_recovery(cluster, options);
  return Program(cluster, resolved, hooks).run();
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

}  // namespace capstan::kge

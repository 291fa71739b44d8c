// model.cpp -- mf on the coordinator: a table of users and a table of items.
#include "train/model.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "train/mf/closures.hpp"

namespace capstan::train {
namespace {

/// Standard deviation of the initial factors; of all factors of a row together. Not 0: if all factors are 0,
/// so are their gradients.
constexpr double kFactorsStddev = 0.1;

double mean_of(const Scores& scores, const std::string& name) {
  const auto sum = scores.sums.find(name);
  return sum == scores.sums.end() ? 0 : sum->second / static_cast<double>(scores.examples);
}

class FactorizationModel final : public Model {
 public:
  FactorizationModel(const ModelOptions& options, ClusterCoordinator& coordinator)
      : options_(options),
        coordinator_(coordinator),
        group_("model", synchronization_of(options)),
        worker_state_(coordinator.create_per_worker_resource<&mf::make_worker_state>(
            mf::Input{options.files(), options.factors, options.l2, options.implicit, options.seed})) {}

  RemoteValue<DataSizes> load(int worker, const Shares& shares) override {
    return coordinator_.schedule_on<&mf::load_ratings>(worker, worker_state_, shares);
  }
  void create(const DataSizes& /*sizes*/) override {
    totals_ = coordinator_.schedule<&mf::count_ratings>(worker_state_).fetch();
    users_.emplace(table("users", totals_.users, 2 * options_.seed));
    items_.emplace(table("items", totals_.items, 2 * options_.seed + 1));
  }
  RemoteValue<void> prepare(int, const Shares&) override {
    throw Error(Code::internal, "prepare() called for mf, expected no call: needs_preparation() is false");
  }
  RemoteValue<TrainResult> train(int worker, const TrainTask& task) override {
    return coordinator_.schedule_on<&mf::train_factors>(worker, worker_state_, task, group_, *users_,
                                                        *items_);
  }
  RemoteValue<Scores> evaluate(int worker, const EvaluateTask& task) override {
    return coordinator_.schedule_on<&mf::evaluate_factors>(worker, worker_state_, task, *users_, *items_);
  }
  Evaluation evaluation_of(const Scores& scores) const override {
    if (!options_.implicit)
      return {{{"rmse", std::sqrt(mean_of(scores, "squared_error")), "RMSE"}}, scores.examples, "ratings"};
    if (!scores.sums.contains("ndcg@20")) return {{{"loss", scores.log_loss()}}, scores.examples, "pairs"};
    return {{{"recall@20", mean_of(scores, "recall@20"), "Recall@20"},
             {"ndcg@20", mean_of(scores, "ndcg@20"), "NDCG@20"}},
            scores.examples,
            "users"};
  }
  double mean_loss(const Scores& scores) const override {
    return options_.implicit ? scores.log_loss() : mean_of(scores, "squared_error");
  }
  double penalty() const override {
    if (options_.l2 == 0) return 0;
    return coordinator_.schedule<&mf::mean_penalty>(worker_state_, *users_, *items_).fetch();
  }
  void restart_group() const override { group_.restart(); }
  Identity identity() const override {
    return {{"a number of users of", std::to_string(totals_.users)},
            {"a number of items of", std::to_string(totals_.items)},
            {"--factors", std::to_string(options_.factors)},
            {"--table-dtype", std::string(options_.tables.name())},
            {"--implicit", options_.implicit ? "true" : "false"},
            // Part of each prediction; the shortest text that parses to the same number.
            {"a mean rating of", options_.implicit ? "0" : fmt::format("{}", totals_.mean)}};
  }

 private:
  EmbeddingTable<Variable> table(const std::string& name, std::int64_t rows, std::uint64_t seed) const {
    const double stddev = kFactorsStddev / std::sqrt(std::max(1.0, static_cast<double>(options_.factors)));
    return {options_.tables, name, Shape{rows, options_.factors + 1}, initializers::normal(0, stddev, seed),
            VariableOptions{.optimizer = options_.optimizer, .group = group_}};
  }

  ModelOptions options_;
  ClusterCoordinator& coordinator_;
  UpdateGroup group_;
  PerWorker<mf::WorkerState> worker_state_;
  mf::RatingTotals totals_;
  std::optional<EmbeddingTable<Variable>> users_, items_;
};

}  // namespace

std::unique_ptr<Model> make_factorization_model(const ModelOptions& options,
                                                ClusterCoordinator& coordinator) {
  return std::make_unique<FactorizationModel>(options, coordinator);
}

}  // namespace capstan::train

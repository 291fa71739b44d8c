// model.cpp -- lr and fm on the coordinator: a table of weights and, for fm, a table of factors.
#include <algorithm>
#include <optional>

#include "train/model.hpp"
#include "train/sparse/closures.hpp"

namespace capstan::train {
namespace {

/// Small enough that the pairs of an example hardly change its first logit, large enough to leave 0, where
/// the gradient of every factor is 0.
constexpr double kFactorStddev = 0.05;
constexpr std::uint64_t kBlockRows = 65536;

double sum_of_squares(const Variable<float>& table, std::uint64_t rows) {
  std::vector<float> block;
  double sum = 0;
  for (std::uint64_t first = 0; first < rows; first += kBlockRows) {
    block.resize(std::min(kBlockRows, rows - first) * table.width());
    table.pull(first, block);
    for (const float x : block) sum += static_cast<double>(x) * static_cast<double>(x);
  }
  return sum;
}

class SparseModel final : public Model {
 public:
  SparseModel(const ModelOptions& options, ClusterCoordinator& coordinator)
      : options_(options),
        coordinator_(coordinator),
        group_("model", synchronization_of(options)),
        worker_state_(coordinator.create_per_worker_resource<&make_sparse_worker_state>(
            SparseInput{options.data,
                        options.test,
                        options.format,
                        {.factors = options.factors, .bias = options.bias, .l2 = options.l2}})) {}

  RemoteValue<DataSizes> load(int worker, const Shares& shares) override {
    return coordinator_.schedule_on<&load_sparse>(worker, worker_state_, shares);
  }
  void create(const DataSizes& sizes) override {
    rows_ = options_.format.rows() > 0 ? options_.format.rows() : std::max<std::int64_t>(sizes.width, 1);
    const VariableOptions trained{.optimizer = options_.optimizer, .group = group_};
    weights_.emplace("weights", Shape{rows_ + (options_.bias ? 1 : 0)}, InitialValue<float>(), trained);
    if (options_.factors > 0) {
      factors_.emplace_back("factors", Shape{rows_, options_.factors},
                            initializers::normal(0, kFactorStddev, options_.seed), trained);
    }
    if (options_.l2 > 0) {
      occurrences_.emplace_back("occurrences", Shape{rows_}, InitialValue<std::int32_t>(),
                                VariableOptions{.trainable = false});
    }
  }
  bool needs_preparation() const override { return !occurrences_.empty(); }
  RemoteValue<void> prepare(int worker, const Shares& shares) override {
    return coordinator_.schedule_on<&count_sparse>(worker, worker_state_, shares, occurrences_.front());
  }
  RemoteValue<TrainResult> train(int worker, const TrainTask& task) override {
    return coordinator_.schedule_on<&train_sparse>(worker, worker_state_, task, group_, *weights_, factors_,
                                                   occurrences_);
  }
  RemoteValue<Scores> evaluate(int worker, const EvaluateTask& task) override {
    return coordinator_.schedule_on<&evaluate_sparse>(worker, worker_state_, task, *weights_, factors_);
  }
  double penalty() const override {
    if (options_.l2 == 0) return 0;
    double sum = sum_of_squares(*weights_, static_cast<std::uint64_t>(rows_));
    for (const auto& factors : factors_) sum += sum_of_squares(factors, factors.rows());
    return options_.l2 / 2 * sum;
  }
  void restart_group() const override { group_.restart(); }
  std::vector<std::pair<std::string, std::string>> identity() const override {
    return {{"a table of rows", std::to_string(rows_)},
            {"--factors", std::to_string(options_.factors)},
            {"--format", options_.format.format},
            {"--bias", options_.bias ? "true" : "false"},
            {"an --l2 above 0:", options_.l2 > 0 ? "true" : "false"}};
  }

 private:
  ModelOptions options_;
  ClusterCoordinator& coordinator_;
  UpdateGroup group_;
  PerWorker<SparseWorkerState> worker_state_;
  std::int64_t rows_ = 0;
  std::optional<Variable<float>> weights_;
  std::vector<Variable<float>> factors_;
  std::vector<Variable<std::int32_t>> occurrences_;
};

}  // namespace

std::unique_ptr<Model> make_sparse_model(const ModelOptions& options, ClusterCoordinator& coordinator) {
  return std::make_unique<SparseModel>(options, coordinator);
}

}  // namespace capstan::train

// model.cpp -- deepfm, dlrm and dcn on the coordinator: a table of embeddings, and a variable of
// the dense parameters.
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/deep/closures.hpp"
#include "train/sparse/click_model.hpp"
#include "train/sparse/sum_of_squares.hpp"

namespace capstan::train {
namespace {

/// Small, because weights and embeddings of features that training has not seen keep their initial values.
/// Not 0, so that products have a gradient.
constexpr double kEmbeddingStddev = 0.01;

template <template <class> class Table>
class DeepModelOnPs final : public ClickModel<Table> {
 public:
  DeepModelOnPs(const ModelOptions& options, ClusterCoordinator& coordinator)
      : ClickModel<Table>(options, coordinator, {}),
        network_(options.deep),
        state_(coordinator.create_per_worker_resource<&make_deep_worker_state>(options.deep)) {}

  void create(const DataSizes& sizes) override {
    const DenseParameters parameters = network_.parameters(options_.seed);
    rows_.emplace(make_rows());
    parameters_.emplace("network", Array<float>::vector(parameters.initial),
                        VariableOptions{.optimizer = options_.optimizer, .group = group_});
    this->create_penalty(sizes, options_.format.rows());
  }
  RemoteValue<TrainResult> train(int worker, const TrainTask& task) override {
    return coordinator_.template schedule_on<&train_deep<Table>>(worker, data_, state_, task, l2_, group_,
                                                                 *rows_, *parameters_, occurrences_);
  }
  RemoteValue<Scores> evaluate(int worker, const EvaluateTask& task) override {
    return coordinator_.template schedule_on<&evaluate_deep<Table>>(worker, data_, state_, task, *rows_,
                                                                    *parameters_);
  }
  double penalty() const override {
    if (!l2_.any()) return 0;
    const Buffer<float> values = parameters_->pull();
    const double layers = sum_of_squares(network_.parameters(options_.seed).penalized, values);
    const std::vector<double> rows = squares_by_column(*rows_, occurrences_.front());
    const double embeddings = std::accumulate(rows.begin() + 1, rows.end(), 0.0);
    return (l2_.weights * rows.front() + l2_.factors * (embeddings + layers)) / 2;
  }
  std::optional<std::int64_t> learned_features() const override {
    if constexpr (kDynamic) {
      return static_cast<std::int64_t>(rows_->visit([](const auto& table) { return table.size(); }));
    } else {
      return {};
    }
  }
  Identity identity() const override {
    return {
        {"a table of rows", kDynamic ? "any features (--dynamic)" : std::to_string(options_.format.rows())},
        {"a network of", options_.deep.text()},
        {"--table-dtype", std::string(options_.tables.name())},
        {"an --l2 above 0:", this->has_penalty()}};
  }

 private:
  using ClickModel<Table>::options_, ClickModel<Table>::coordinator_, ClickModel<Table>::group_,
      ClickModel<Table>::data_, ClickModel<Table>::l2_, ClickModel<Table>::occurrences_,
      ClickModel<Table>::kDynamic;

  EmbeddingTable<Table> make_rows() const {
    const auto width = static_cast<std::int64_t>(options_.deep.row_width());
    const Initializer initial = initializers::normal(0, kEmbeddingStddev, options_.seed);
    if constexpr (kDynamic) {
      return {options_.tables, "embeddings", width, initial,
              TableOptions{.optimizer = options_.optimizer,
                           .missing = MissingKeys::initial,
                           .max_keys = options_.max_keys,
                           .admit_after = options_.admit_after,
                           .group = group_}};
    } else {
      return {options_.tables, "embeddings", Shape{options_.format.rows(), width}, initial,
              VariableOptions{.optimizer = options_.optimizer, .group = group_}};
    }
  }

  DeepNetwork network_;  // for its parameters' layout
  PerWorker<DeepWorkerState> state_;
  std::optional<EmbeddingTable<Table>> rows_;
  std::optional<Variable<float>> parameters_;
};

}  // namespace

std::unique_ptr<Model> make_deep_model(const ModelOptions& options, ClusterCoordinator& coordinator) {
  if (options.format.dynamic) return std::make_unique<DeepModelOnPs<DynamicTable>>(options, coordinator);
  return std::make_unique<DeepModelOnPs<Variable>>(options, coordinator);
}

}  // namespace capstan::train

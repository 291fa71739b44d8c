// model.cpp -- deepfm, dlrm and dcn on the coordinator: a table of embeddings, and a variable of
// the dense parameters.
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "train/deep/closures.hpp"
#include "train/model.hpp"
#include "train/sparse/sum_of_squares.hpp"

namespace capstan::train {
namespace {

/// Small, because weights and embeddings of features that training has not seen keep their initial values.
/// Not 0, so that products have a gradient.
constexpr double kEmbeddingStddev = 0.01;

/// `Table` is Variable or DynamicTable.
template <template <class> class Table>
class DeepModelOnPs final : public Model {
 public:
  DeepModelOnPs(const ModelOptions& options, ClusterCoordinator& coordinator)
      : options_(options),
        coordinator_(coordinator),
        group_("model", synchronization_of(options)),
        network_(options.deep),
        data_(coordinator.create_per_worker_resource<&make_sparse_worker_state>(
            SparseInput{options.files(), options.format, {}})),
        state_(coordinator.create_per_worker_resource<&make_deep_worker_state>(options.deep)) {}

  RemoteValue<DataSizes> load(int worker, const Shares& shares) override {
    return coordinator_.schedule_on<&load_sparse>(worker, data_, shares);
  }
  void create(const DataSizes& sizes) override {
    l2_ = options_.sparse_l2.for_examples(sizes.train);
    const DenseParameters parameters = network_.parameters(options_.seed);
    rows_.emplace(make_rows());
    parameters_.emplace("network", Array<float>::vector(parameters.initial),
                        VariableOptions{.optimizer = options_.optimizer, .group = group_});
    if (l2_.any()) occurrences_.push_back(make_occurrences());
  }
  bool needs_preparation() const override { return !occurrences_.empty(); }
  RemoteValue<void> prepare(int worker, const Shares& shares) override {
    return coordinator_.schedule_on<&count_sparse<Table>>(worker, data_, shares, occurrences_.front());
  }
  RemoteValue<TrainResult> train(int worker, const TrainTask& task) override {
    return coordinator_.schedule_on<&train_deep<Table>>(worker, data_, state_, task, l2_, group_, *rows_,
                                                        *parameters_, occurrences_);
  }
  RemoteValue<Scores> evaluate(int worker, const EvaluateTask& task) override {
    return coordinator_.schedule_on<&evaluate_deep<Table>>(worker, data_, state_, task, *rows_, *parameters_);
  }
  double penalty() const override {
    if (!l2_.any()) return 0;
    const Buffer<float> values = parameters_->pull();
    const double layers = sum_of_squares(network_.parameters(options_.seed).penalized, values);
    return (l2_.weights * squares_of_rows(0, 1) +
            l2_.factors * (squares_of_rows(1, options_.deep.row_width()) + layers)) /
           2;
  }
  std::optional<std::int64_t> learned_features() const override {
    if constexpr (kDynamic) {
      return static_cast<std::int64_t>(rows_->visit([](const auto& table) { return table.size(); }));
    } else {
      return {};
    }
  }
  void restart_group() const override { group_.restart(); }
  Identity identity() const override {
    return {
        {"a table of rows", kDynamic ? "any features (--dynamic)" : std::to_string(options_.format.rows())},
        {"a network of", options_.deep.text()},
        {"--table-dtype", std::string(options_.tables.name())},
        {"an --l2 above 0:", options_.sparse_l2.for_examples(1).any() ? "true" : "false"}};
  }

 private:
  static constexpr bool kDynamic = std::is_same_v<Table<float>, DynamicTable<float>>;

  /// Of the columns `begin` to `end` - 1.
  double squares_of_rows(std::size_t begin, std::size_t end) const {
    if constexpr (kDynamic) {
      return sum_of_squares(*rows_, begin, end);
    } else {
      return sum_of_squares(*rows_, occurrences_.front(), begin, end);
    }
  }
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
  Table<std::int32_t> make_occurrences() const {
    if constexpr (kDynamic) {
      return {
          "occurrences", 1, Initializer(),
          TableOptions{.optimizer = counting_optimizer(), .max_keys = options_.max_keys, .trainable = false}};
    } else {
      return {"occurrences", Shape{options_.format.rows()}, InitialValue<std::int32_t>(),
              VariableOptions{.optimizer = counting_optimizer(), .trainable = false}};
    }
  }

  ModelOptions options_;
  ClusterCoordinator& coordinator_;
  UpdateGroup group_;
  DeepNetwork network_;  // for its parameters' layout
  PerWorker<SparseWorkerState> data_;
  PerWorker<DeepWorkerState> state_;
  L2Penalty l2_;  // set by create()
  std::optional<EmbeddingTable<Table>> rows_;
  std::optional<Variable<float>> parameters_;
  std::vector<Table<std::int32_t>> occurrences_;
};

}  // namespace

std::unique_ptr<Model> make_deep_model(const ModelOptions& options, ClusterCoordinator& coordinator) {
  if (options.format.dynamic) return std::make_unique<DeepModelOnPs<DynamicTable>>(options, coordinator);
  return std::make_unique<DeepModelOnPs<Variable>>(options, coordinator);
}

}  // namespace capstan::train

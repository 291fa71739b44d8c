// model.cpp -- lr and fm on the coordinator: a table of weights and, for fm, a table of factors.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/printable.hpp"
#include "train/model.hpp"
#include "train/sparse/click_model.hpp"
#include "train/sparse/sum_of_squares.hpp"

namespace capstan::train {
namespace {

/// Small enough that the factors hardly change the first logits. Not 0: if all factors are 0, so are their
/// gradients.
constexpr double kFactorStddev = 0.05;

template <template <class> class Table>
class SparseModel : public ClickModel<Table> {
 public:
  SparseModel(const ModelOptions& options, ClusterCoordinator& coordinator)
      : ClickModel<Table>(options, coordinator, {.factors = options.factors, .bias = options.bias}) {}

  RemoteValue<TrainResult> train(int worker, const TrainTask& task) override {
    return coordinator_.template schedule_on<&train_sparse<Table>>(worker, data_, task, l2_, group_,
                                                                   *weights_, factors_, occurrences_);
  }
  RemoteValue<Scores> evaluate(int worker, const EvaluateTask& task) override {
    return coordinator_.template schedule_on<&evaluate_sparse<Table>>(worker, data_, task, *weights_,
                                                                      factors_);
  }
  double penalty() const override {
    double sum = 0;
    if (l2_.weights > 0) sum += l2_.weights * sum_of_squares(*weights_, occurrences_.front());
    if (l2_.factors > 0) {
      for (const auto& factors : factors_) sum += l2_.factors * sum_of_squares(factors, occurrences_.front());
    }
    return sum / 2;
  }
  Identity identity() const override {
    Identity found{{"a table of rows", rows()},
                   {"--factors", std::to_string(options_.factors)},
                   {"--format", options_.format.format},
                   {"--table-dtype", std::string(options_.tables.name())},
                   {"--bias", options_.bias ? "true" : "false"},
                   {"an --l2 above 0:", this->has_penalty()}};
    if (options_.format.format != "csv") return found;
    for (const auto& [column, role] : options_.format.schema.roles()) {
      found.emplace_back(fmt::format("the role of column {} in --schema:", printable(column)), role);
    }
    return found;
  }

 protected:
  /// Describes the rows of the tables for identity(): their number, or that they are dynamic.
  virtual std::string rows() const = 0;

  using ClickModel<Table>::options_, ClickModel<Table>::coordinator_, ClickModel<Table>::group_,
      ClickModel<Table>::data_, ClickModel<Table>::l2_, ClickModel<Table>::occurrences_;

  std::optional<EmbeddingTable<Table>> weights_;
  std::vector<EmbeddingTable<Table>> factors_;
};

/// The row of a feature is its id in the data, or is selected by a hash with a fixed number of bits.
class NumberedModel final : public SparseModel<Variable> {
 public:
  using SparseModel::SparseModel;

  void create(const DataSizes& sizes) override {
    rows_ = options_.format.rows() > 0 ? options_.format.rows() : std::max<std::int64_t>(sizes.width, 1);
    const VariableOptions trained_options{.optimizer = options_.optimizer, .group = group_};
    weights_.emplace(options_.tables, "weights", Shape{rows_ + (options_.bias ? 1 : 0)}, Initializer(),
                     trained_options);
    if (options_.factors > 0) {
      factors_.emplace_back(options_.tables, "factors", Shape{rows_, options_.factors},
                            initializers::normal(0, kFactorStddev, options_.seed), trained_options);
    }
    create_penalty(sizes, rows_);
  }

 private:
  std::string rows() const override { return std::to_string(rows_); }

  std::int64_t rows_ = 0;
};

/// The key of a row is its feature. A push adds the row when the feature has occurred admit_after times.
class DynamicModel final : public SparseModel<DynamicTable> {
 public:
  using SparseModel::SparseModel;

  void create(const DataSizes& sizes) override {
    TableOptions trained_options{.optimizer = options_.optimizer,
                                 .missing = MissingKeys::initial,
                                 .max_keys = options_.max_keys,
                                 .admit_after = options_.admit_after,
                                 .group = group_};
    weights_.emplace(options_.tables, "weights", 1, Initializer(), trained_options);
    if (options_.bias) weights_->visit([](const auto& table) { table.insert(std::vector{kBiasKey}); });
    if (options_.factors > 0) {
      factors_.emplace_back(options_.tables, "factors", options_.factors,
                            initializers::normal(0, kFactorStddev, options_.seed), trained_options);
    }
    create_penalty(sizes, 0);
  }
  std::optional<std::int64_t> learned_features() const override {
    const std::uint64_t keys = weights_->visit([](const auto& table) { return table.size(); });
    return static_cast<std::int64_t>(keys) - (options_.bias ? 1 : 0);
  }

 private:
  std::string rows() const override { return "any features (--dynamic)"; }
};

}  // namespace

std::unique_ptr<Model> make_sparse_model(const ModelOptions& options, ClusterCoordinator& coordinator) {
  if (options.format.dynamic) return std::make_unique<DynamicModel>(options, coordinator);
  return std::make_unique<NumberedModel>(options, coordinator);
}

}  // namespace capstan::train

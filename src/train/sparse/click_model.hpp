// click_model.hpp -- the part of a model on the coordinator that lr, fm, deepfm, dlrm and dcn share: the
// examples on the workers, the update group, and the counts of features for the L2 penalty.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "train/model.hpp"
#include "train/sparse/closures.hpp"

namespace capstan::train {

/// `Table` is Variable, whose rows are numbered, or DynamicTable, whose rows have keys.
template <template <class> class Table>
class ClickModel : public Model {
 public:
  ClickModel(const ModelOptions& options, ClusterCoordinator& coordinator, const FmOptions& machine)
      : options_(options),
        coordinator_(coordinator),
        group_("model", synchronization_of(options)),
        data_(coordinator.create_per_worker_resource<&make_sparse_worker_state>(
            SparseInput{options.files(), options.format, machine})) {}

  RemoteValue<DataSizes> load(int worker, const Shares& shares) override {
    return coordinator_.schedule_on<&load_sparse>(worker, data_, shares);
  }
  bool needs_preparation() const override { return !occurrences_.empty(); }
  RemoteValue<void> prepare(int worker, const Shares& shares) override {
    return coordinator_.schedule_with<&count_sparse<Table>>({.affinity = worker}, data_, shares,
                                                            occurrences_.front());
  }
  void restart_group() const override { group_.restart(); }

 protected:
  static constexpr bool kDynamic = std::is_same_v<Table<float>, DynamicTable<float>>;

  /// Sets the penalty, and with one creates the counts of the features. `rows` is unused if they have keys.
  void create_penalty(const DataSizes& sizes, std::int64_t rows) {
    l2_ = options_.sparse_l2.for_examples(sizes.train);
    if (!l2_.any()) return;
    if constexpr (kDynamic) {
      occurrences_.emplace_back(
          "occurrences", 1, Initializer(),
          TableOptions{.optimizer = counting_optimizer(), .max_keys = options_.max_keys, .trainable = false});
    } else {
      occurrences_.emplace_back("occurrences", Shape{rows}, InitialValue<std::int32_t>(),
                                VariableOptions{.optimizer = counting_optimizer(), .trainable = false});
    }
  }
  /// Whether the tables count features for a penalty; part of identity().
  std::string has_penalty() const { return options_.sparse_l2.for_examples(1).any() ? "true" : "false"; }

  ModelOptions options_;
  ClusterCoordinator& coordinator_;
  UpdateGroup group_;
  PerWorker<SparseWorkerState> data_;
  L2Penalty l2_ = {};                             // set by create_penalty()
  std::vector<Table<std::int32_t>> occurrences_;  // one element with a penalty, else none
};

}  // namespace capstan::train

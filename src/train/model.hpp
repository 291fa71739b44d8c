// model.hpp -- what lr, fm and mlp have in common for the coordinator: orders for workers, and their results.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capstan/capstan.hpp"
#include "train/metrics.hpp"
#include "train/model_options.hpp"
#include "train/orders.hpp"

namespace capstan::train {

/// Its variables are on the ps, the data with the workers. On the coordinator, in a strategy's scope.
class Model {
 public:
  virtual ~Model() = default;

  /// Started in this order: what the data is, then the variables for it, then the rest.
  virtual RemoteValue<DataSizes> load(int worker, const Shares& shares) = 0;
  virtual void create(const DataSizes& sizes) = 0;
  /// What training needs to know of each worker's shares; false when that is nothing.
  virtual bool needs_preparation() const { return false; }
  virtual RemoteValue<void> prepare(int worker, const Shares& shares) = 0;

  virtual RemoteValue<TrainResult> train(int worker, const TrainOrder& order) = 0;
  virtual RemoteValue<Scores> evaluate(int worker, const EvaluateOrder& order) = 0;
  /// l2 / 2 |weights|^2 as they are now.
  virtual double penalty() const = 0;
  virtual void restart_group() const = 0;
  /// What a checkpoint must agree with: names and values, as a message shows them.
  virtual std::vector<std::pair<std::string, std::string>> identity() const = 0;
};

std::unique_ptr<Model> make_sparse_model(const ModelOptions& options, ClusterCoordinator& coordinator);
std::unique_ptr<Model> make_image_model(const ModelOptions& options, ClusterCoordinator& coordinator);

/// The group of a mode; its synchronous workers push sums.
Synchronization synchronization_of(const ModelOptions& options);

}  // namespace capstan::train

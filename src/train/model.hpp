// model.hpp -- interface of lr, fm and mlp to the coordinator: starts closures on workers and returns their
// results.
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
#include "train/tasks.hpp"

namespace capstan::train {

/// A model whose variables are on the ps and whose data is with the workers. Used on the coordinator, inside
/// a strategy's scope.
class Model {
 public:
  virtual ~Model() = default;

  /// Call order: load() for the sizes of the data, create() for the variables, then the rest.
  virtual RemoteValue<DataSizes> load(int worker, const Shares& shares) = 0;
  virtual void create(const DataSizes& sizes) = 0;
  /// Returns true if prepare() must run on every worker's shares before training.
  virtual bool needs_preparation() const { return false; }
  virtual RemoteValue<void> prepare(int worker, const Shares& shares) = 0;

  virtual RemoteValue<TrainResult> train(int worker, const TrainTask& task) = 0;
  virtual RemoteValue<Scores> evaluate(int worker, const EvaluateTask& task) = 0;
  /// l2 / 2 |weights|^2 of the current values.
  virtual double penalty() const = 0;
  virtual void restart_group() const = 0;
  /// Names and values, as error messages show them, that a checkpoint must match to be restored.
  virtual std::vector<std::pair<std::string, std::string>> identity() const = 0;
};

std::unique_ptr<Model> make_sparse_model(const ModelOptions& options, ClusterCoordinator& coordinator);
std::unique_ptr<Model> make_image_model(const ModelOptions& options, ClusterCoordinator& coordinator);

/// Synchronization of the update group. Synchronous workers push sums, not means.
Synchronization synchronization_of(const ModelOptions& options);

}  // namespace capstan::train

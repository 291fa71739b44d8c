// model.hpp -- the interface through which the coordinator trains a model whose examples are divided into
// shares: all but kge. Calls that return a RemoteValue schedule a closure on a worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "capstan/capstan.hpp"
#include "train/metrics.hpp"
#include "train/model_options.hpp"
#include "train/tasks.hpp"
#include "train/training_run.hpp"

namespace capstan::train {

/// A model whose variables are on the ps and whose examples are in the memory of the workers. Used on the
/// coordinator, inside a strategy's scope.
class Model {
 public:
  virtual ~Model() = default;

  /// Call order: load() for the sizes of the data, create() for the variables, then the rest.
  virtual RemoteValue<DataSizes> load(int worker, const Shares& shares) = 0;
  virtual void create(const DataSizes& sizes) = 0;
  /// Returns true if prepare() must run for every share before training.
  virtual bool needs_preparation() const { return false; }
  /// Its pushes count once, even if a worker dies: the closure then runs on another one. `worker` is
  /// preferred, because it has loaded the shares.
  virtual RemoteValue<void> prepare(int worker, const Shares& shares) = 0;

  virtual RemoteValue<TrainResult> train(int worker, const TrainTask& task) = 0;
  virtual RemoteValue<Scores> evaluate(int worker, const EvaluateTask& task) = 0;
  /// The metrics of merged scores.
  virtual Evaluation evaluation_of(const Scores& scores) const { return classification(scores); }
  /// The loss that training minimizes, without the penalty, as a mean over the scored examples.
  virtual double mean_loss(const Scores& scores) const { return scores.log_loss(); }
  /// Returns (l2 / 2) * |w|^2, where w are all current parameters except biases.
  virtual double penalty() const = 0;
  /// Returns the number of features in the dynamic tables. Returns nullopt for a model without dynamic
  /// tables, which has DataSizes::width features.
  virtual std::optional<std::int64_t> learned_features() const { return {}; }
  /// Makes all live workers members of the update group again. REQUIRES: no train() is running.
  virtual void restart_group() const = 0;
  virtual Identity identity() const = 0;
};

/// Makes a model of type lr or fm.
std::unique_ptr<Model> make_sparse_model(const ModelOptions& options, ClusterCoordinator& coordinator);
/// Makes a model of type mf.
std::unique_ptr<Model> make_factorization_model(const ModelOptions& options, ClusterCoordinator& coordinator);
/// Makes a model of type mlp.
std::unique_ptr<Model> make_image_model(const ModelOptions& options, ClusterCoordinator& coordinator);

/// Makes a model of type deepfm, dlrm or dcn.
std::unique_ptr<Model> make_deep_model(const ModelOptions& options, ClusterCoordinator& coordinator);

/// Synchronization of the update group. Synchronous workers push sums, not means.
Synchronization synchronization_of(const ModelOptions& options);

}  // namespace capstan::train

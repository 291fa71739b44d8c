// input.hpp -- input for the replicas of a worker: divides global batches, shards pipelines.
//
// A worker's dataset yields a PerReplica per step, with one batch per replica. It is made on the worker:
//
//   auto make_steps(std::string file) {  // for create_per_worker_dataset
//     return get_replicas().distribute_dataset(libsvm_batches({file}, 1024).repeat());
//   }
//
// TensorFlow's ParameterServerStrategy does not shard datasets between workers, since workers join and leave:
// each worker reads all the data, in its own order (docs/input.md). The member functions of Replicas do the
// same. The free functions, which take an InputPlacement or InputContext, also support synchronous strategies
// and earlier generations of TensorFlow.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/data/batch_of.hpp"
#include "capstan/data/steps.hpp"
#include "capstan/dataset.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/detail/per_replica.hpp"
#include "capstan/replica.hpp"

namespace capstan {

/// Describes, to a function that makes a dataset, where it is read. The numbers are independent: a
/// synchronous job of 2 workers with 2 replicas each has 2 pipelines and 4 replicas in sync, an asynchronous
/// one 2 pipelines and 2 replicas in sync.
struct CAPSTAN_API InputContext {
  std::int64_t num_input_pipelines = 1;
  std::int64_t input_pipeline_id = 0;
  std::int64_t num_replicas_in_sync = 1;

  /// Returns global_batch_size / num_replicas_in_sync. Throws Error(invalid_argument) if that is not an
  /// integer.
  std::int64_t get_per_replica_batch_size(std::int64_t global_batch_size) const;
};

/// How pipelines on several workers share the data. The values are TensorFlow's.
enum class AutoShardPolicy : std::int8_t {
  off = -1,       ///< every pipeline reads everything
  automatic = 0,  ///< `file` if possible, else `data`, with a warning in the log
  file = 1,       ///< file k goes to pipeline k mod n
  data = 2,       ///< element i goes to pipeline i mod n; each reads all files
  hint = 3,       ///< replaces the arguments of shard(kShardHint, kShardHint)
};

enum class InputReplicationMode : std::uint8_t {
  per_worker = 0,   ///< one pipeline per worker, whose elements are distributed to the replicas
  per_replica = 1,  ///< one pipeline per replica; only for datasets made by a function
};

struct InputOptions {
  /// Transfers batches to the replica's device; also known as experimental_prefetch_to_device. For replicas
  /// on the host, batches are there already.
  bool fetch_to_device = true;
  InputReplicationMode replication_mode = InputReplicationMode::per_worker;
  /// Runs the pipeline itself on the device: only with per_replica and fetch_to_device.
  bool place_dataset_on_device = false;
  /// Number of steps that a background thread prepares ahead; 0: none.
  std::int64_t per_replica_buffer_size = 1;
  /// For distribute_dataset: how the workers of InputPlacement share the data. A single pipeline is never
  /// sharded.
  AutoShardPolicy auto_shard_policy = AutoShardPolicy::automatic;
};

/// Where a pipeline is read: the worker among those that share the data, and its number of replicas.
struct InputPlacement {
  std::int64_t workers = 1;
  std::int64_t worker = 0;
  std::int64_t replicas = 1;  ///< per worker, equal on all
};

/// Sizes of the batches that a worker's replicas get in turn, from a global batch that all workers share.
/// Let N = workers * replicas, f = global / N and c = global - f N. Worker 0 has N sizes: c times f + 1, then
/// N - c times f. Worker w has the same list, rotated left by w * replicas. So the sizes of each worker,
/// and those of each step over all workers, add up to the global batch, and no two differ by more than 1.
/// {global 7, 2 workers, 2 replicas}: [2, 2, 2, 1] and [2, 1, 2, 2].
CAPSTAN_API std::vector<std::int64_t> batch_sizes_for_worker(std::int64_t global_batch_size,
                                                             const InputPlacement& place);

namespace data {

/// Rewrites the pipeline `root` for pipeline `index` of `count`. `pieces` is the number of replicas that
/// share a batch, for a rebatch that is sharded by data; 0: `count`.
CAPSTAN_API OperatorPointer auto_sharded(const OperatorPointer& root, AutoShardPolicy policy,
                                         std::int64_t count, std::int64_t index, std::int64_t pieces);
CAPSTAN_API void check(const InputOptions& options);
CAPSTAN_API void check(const InputPlacement& place);

}  // namespace data

/// Rewrites `dataset` for pipeline `index` of `count`. A single pipeline reads everything, by every policy.
///
/// By file: the pipeline's readers, and the names of list_files that an interleave opens, keep every count-th
/// file. Throws Error(not_found) if a source of the pipeline is neither of these. If there are fewer files
/// than pipelines, throws Error(invalid_argument) for a pipeline that has a file; a pipeline without a file
/// reads nothing. By data: elements are sharded at the end of the pipeline, before a final prefetch. If there
/// are fewer elements than pipelines, an iterator that has an element throws Error(invalid_argument).
template <class T>
Dataset<T> auto_shard(const Dataset<T>& dataset, AutoShardPolicy policy, std::int64_t count,
                      std::int64_t index, std::int64_t replicas = 0) {
  return Dataset<T>(data::node_as<T>(data::auto_sharded(dataset.node(), policy, count, index, replicas)));
}

/// Groups of `replicas` elements, by replica. At the end, replicas without a batch get an empty one; leftover
/// elements that are not batches, or are batches that are always full (drop_remainder), are dropped.
template <class T>
Dataset<PerReplica<T>> deal_out(const Dataset<T>& dataset, std::int64_t replicas) {
  return Dataset<PerReplica<T>>(std::make_shared<data::GroupNode<T>>(dataset.node(), replicas));
}

/// A dataset for the replicas of a worker, read where it is made: return it from the function passed to
/// `create_per_worker_dataset`. Iterating over it directly is an error, as in TensorFlow.
template <class B>
class DistributedDataset {
 public:
  using Element = PerReplica<B>;

  explicit DistributedDataset(Dataset<PerReplica<B>> steps) : steps_(std::move(steps)) {}

  /// Used by create_per_worker_dataset.
  operator Iterator<Element>() const {
    return steps_.make_iterator();
  }  // NOLINT(google-explicit-constructor)

  /// Always throw Error(invalid_argument).
  Iterator<Element> make_iterator() const { refuse(); }
  Element* begin() const { refuse(); }
  Element* end() const { refuse(); }

  /// The underlying pipeline.
  const Dataset<Element>& steps() const noexcept { return steps_; }

 private:
  [[noreturn]] static void refuse() {
    throw Error(
        Code::invalid_argument,
        "DistributedDataset: iterated directly, expected create_per_worker_dataset; return the dataset "
        "from the function passed to it");
  }
  Dataset<Element> steps_;
};

/// Cuts each global batch of `dataset` into one batch per replica: by batch_sizes_for_worker, or, if the
/// size of the batches is not known (after a map, for instance), into equal parts, rounded up. The last
/// ones may be smaller or empty. With more than one worker, the pipelines share the data by the policy.
/// Throws Error: unimplemented for per_replica; invalid_argument for invalid options.
template <Batch B>
DistributedDataset<B> distribute_dataset(const Dataset<B>& dataset, const InputPlacement& place,
                                         const InputOptions& options = {}) {
  data::check(options);
  data::check(place);
  if (options.replication_mode == InputReplicationMode::per_replica) {
    throw Error(Code::unimplemented,
                "distribute_dataset: found InputReplicationMode::per_replica, expected per_worker; use "
                "distribute_datasets_from_function");
  }
  const data::BatchInfo info = dataset.batches();
  const std::int64_t pieces = place.workers * place.replicas;
  Dataset<B> cut = info.size > 0 ? dataset.rebatch(batch_sizes_for_worker(info.size, place), info.always_full)
                                 : dataset.legacy_rebatch(pieces);
  if (place.workers > 1) {
    cut = auto_shard(cut, options.auto_shard_policy, place.workers, place.worker, pieces);
  }
  return DistributedDataset<B>(deal_out(cut, place.replicas).prefetch(options.per_replica_buffer_size));
}

namespace data {

/// Throws Error(invalid_argument) for invalid numbers.
CAPSTAN_API void check(const InputContext& context, std::int64_t replicas);

/// Returns steps of one element for each of `fed` replicas, by default all in sync. The elements are those of
/// make(context), or, with per_replica, of one call of make per replica.
template <class F, class D = std::decay_t<std::invoke_result_t<F&, const InputContext&>>>
auto steps_from_function(F& make, const InputContext& context, InputReplicationMode mode,
                         std::optional<std::int64_t> fed) {
  using T = typename D::Element;
  const std::int64_t replicas = fed.value_or(context.num_replicas_in_sync);
  check(context, replicas);
  if (mode == InputReplicationMode::per_worker) return deal_out(make(context), replicas);
  std::vector<NodePointer<T>> pipelines;
  for (std::int64_t replica = 0; replica < replicas; ++replica) {
    const InputContext own{context.num_input_pipelines * replicas,
                           context.input_pipeline_id * replicas + replica, context.num_replicas_in_sync};
    pipelines.push_back(make(own).node());
  }
  // One element of each pipeline per step; a pipeline that ends early is padded with empty batches.
  return Dataset<PerReplica<T>>(std::make_shared<SideBySideNode<T>>(std::move(pipelines)));
}

}  // namespace data

/// `make(context)` returns a Dataset whose elements, usually batches, are for one replica each; a step takes
/// one element per replica. `replicas` is the number of replicas that this pipeline feeds, by default all in
/// sync. With per_replica, make is called once per replica, and each call counts as one pipeline. `make` must
/// divide and shard the data itself. Throws Error(invalid_argument) for invalid options or numbers.
template <class F>
auto distribute_datasets_from_function(F make, const InputContext& context, const InputOptions& options = {},
                                       std::optional<std::int64_t> replicas = {}) {
  data::check(options);
  auto steps = data::steps_from_function(make, context, options.replication_mode, replicas);
  return DistributedDataset(steps.prefetch(options.per_replica_buffer_size));
}

// --- Calls of earlier TensorFlow generations

/// As make_dataset_iterator of tf.contrib: each batch of `dataset` is for one replica, and a step takes one
/// per replica.
template <class T>
Iterator<PerReplica<T>> make_dataset_iterator(const Dataset<T>& dataset, std::int64_t replicas) {
  return deal_out(dataset, replicas).make_iterator();
}

/// As above, for the dataset that make(context) returns, or, with per_replica, for one dataset per replica.
template <class F>
auto make_input_fn_iterator(F make, const InputContext& context,
                            InputReplicationMode replication_mode = InputReplicationMode::per_worker,
                            std::optional<std::int64_t> replicas = {}) {
  return data::steps_from_function(make, context, replication_mode, replicas).make_iterator();
}

template <Batch B>
DistributedDataset<B> Replicas::distribute_dataset(const Dataset<B>& dataset,
                                                   const InputOptions& options) const {
  return capstan::distribute_dataset(dataset, {.replicas = replicas_of_input("distribute_dataset")}, options);
}
template <Batch B>
DistributedDataset<B> Replicas::distribute_dataset(const Dataset<B>& dataset) const {
  return distribute_dataset(dataset, InputOptions{});
}

template <class F>
auto Replicas::distribute_datasets_from_function(F make, const InputOptions& options) const {
  const auto replicas = replicas_of_input("distribute_datasets_from_function");
  return capstan::distribute_datasets_from_function(std::move(make), {.num_replicas_in_sync = replicas},
                                                    options);
}
template <class F>
auto Replicas::distribute_datasets_from_function(F make) const {
  return distribute_datasets_from_function(std::move(make), InputOptions{});
}

template <class T>
Iterator<PerReplica<T>> Replicas::make_dataset_iterator(const Dataset<T>& dataset) const {
  return capstan::make_dataset_iterator(dataset, replicas_of_input("make_dataset_iterator"));
}
template <class F>
auto Replicas::make_input_fn_iterator(F make, InputReplicationMode replication_mode) const {
  const auto replicas = replicas_of_input("make_input_fn_iterator");
  return capstan::make_input_fn_iterator(std::move(make), {.num_replicas_in_sync = replicas},
                                         replication_mode);
}
template <class F>
auto Replicas::make_input_fn_iterator(F make) const {
  return make_input_fn_iterator(std::move(make), InputReplicationMode::per_worker);
}

/// Stacks the arrays of a batch along a new first axis, for Dataset::batch_as. Throws
/// Error(invalid_argument) if shapes differ, or if there are no arrays.
template <class T>
Array<T> stack(std::vector<Array<T>> rows) {
  if (rows.empty()) throw Error(Code::invalid_argument, "stack: found no arrays, expected at least one");
  Array<T> stacked = std::move(rows[0]);
  const Shape shape = stacked.shape;
  stacked.shape.insert(stacked.shape.begin(), static_cast<std::int64_t>(rows.size()));
  stacked.values.reserve(stacked.values.size() * rows.size());
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].shape != shape) {
      throw Error(Code::invalid_argument, "stack: found shapes " + to_string(shape) + " and " +
                                              to_string(rows[i].shape) + ", expected equal shapes");
    }
    stacked.values.insert(stacked.values.end(), rows[i].values.begin(), rows[i].values.end());
  }
  return stacked;
}

namespace detail {

/// Row `i` of an array along axis 0, or of each array in a pair or tuple.
template <class T>
Array<T> row_of(const Array<T>& array, std::int64_t i) {
  Shape shape(array.shape.begin() + 1, array.shape.end());
  const std::int64_t width = elements_of(shape);
  return Array<T>(std::move(shape),
                  {array.values.begin() + i * width, array.values.begin() + (i + 1) * width});
}
template <class A, class B>
std::pair<A, B> row_of(const std::pair<A, B>& arrays, std::int64_t i) {
  return {row_of(arrays.first, i), row_of(arrays.second, i)};
}
template <class... A>
std::tuple<A...> row_of(const std::tuple<A...>& arrays, std::int64_t i) {
  return std::apply([i](const A&... array) { return std::tuple<A...>{row_of(array, i)...}; }, arrays);
}

/// A function object that returns row i of arrays shared by its copies.
template <class Arrays>
struct RowOf {
  std::shared_ptr<const Arrays> arrays;
  Arrays operator()(std::int64_t i) const { return row_of(*arrays, i); }
};

}  // namespace detail

template <Serializable Arrays>
struct Serializer<detail::RowOf<Arrays>> {
  static void write(Writer& out, const detail::RowOf<Arrays>& rows) { capstan::write(out, *rows.arrays); }
  static detail::RowOf<Arrays> read(Reader& in) {
    return {std::make_shared<const Arrays>(capstan::read<Arrays>(in))};
  }
};

/// The counterpart of make_numpy_dataset: the rows along axis 0 of an array, or of a pair or tuple of
/// arrays with equal numbers of rows. Throws Error(invalid_argument) for a scalar or for different numbers
/// of rows.
template <Batch Arrays>
Dataset<Arrays> make_array_dataset(Arrays arrays) {
  const std::int64_t rows = BatchOf<Arrays>::size(arrays);
  return Dataset<std::int64_t>::range(rows).map(
      detail::RowOf<Arrays>{std::make_shared<const Arrays>(std::move(arrays))});
}

}  // namespace capstan

// input.hpp -- input for the replicas of a worker: global batches cut up, pipelines sharded.
//
// A worker's dataset gives a PerReplica at every step, one batch a replica. It is made on the worker:
//
//   auto make_steps(std::string file) {  // for create_per_worker_dataset
//     return get_replicas().distribute_dataset(libsvm_batches({file}, 1024).repeat());
//   }
//
// TensorFlow's ParameterServerStrategy does not shard datasets between workers, since workers come and go:
// each sees all the data, in an order of its own (docs/input.md), and so do the members of Replicas. The free
// functions, which are told where they are, also do what earlier generations and synchronous strategies do.
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

/// What a function that makes a dataset is told of the place where it is read. The numbers are independent: a
/// synchronous job of 2 workers with 2 replicas each has 2 pipelines and 4 replicas in sync, an asynchronous
/// one 2 pipelines and 2 replicas in sync.
struct CAPSTAN_API InputContext {
  std::int64_t num_input_pipelines = 1;
  std::int64_t input_pipeline_id = 0;
  std::int64_t num_replicas_in_sync = 1;

  /// global_batch_size / num_replicas_in_sync. Throws Error(invalid_argument) when that is not whole.
  std::int64_t get_per_replica_batch_size(std::int64_t global_batch_size) const;
};

/// How pipelines on several workers share the data. The numbers are TensorFlow's.
enum class AutoShardPolicy : std::int8_t {
  off = -1,       ///< every pipeline reads everything
  automatic = 0,  ///< file where that can be, else data, with a warning in the log
  file = 1,       ///< file k goes to pipeline k mod n
  data = 2,       ///< element i goes to pipeline i mod n; each reads all files
  hint = 3,       ///< shard(kShardHint, kShardHint) gets its numbers
};

enum class InputReplicationMode : std::uint8_t {
  per_worker = 0,   ///< one pipeline a worker, its elements dealt out
  per_replica = 1,  ///< one pipeline a replica; only for datasets that a function makes
};

struct InputOptions {
  /// Batches are handed to the replica's device; also known as experimental_prefetch_to_device. Replicas on
  /// the host have their batches where they are made.
  bool fetch_to_device = true;
  InputReplicationMode replication_mode = InputReplicationMode::per_worker;
  /// The pipeline itself runs on the device: only with per_replica and fetch_to_device.
  bool place_dataset_on_device = false;
  /// Steps that a thread of its own makes ahead; 0: none.
  std::int64_t per_replica_buffer_size = 1;
  /// Of distribute_dataset, between the pipelines of the place. One pipeline is never sharded.
  AutoShardPolicy auto_shard_policy = AutoShardPolicy::automatic;
};

/// Where a pipeline is read: on which of how many workers that share the data, for how many replicas of it.
struct InputPlace {
  std::int64_t workers = 1;
  std::int64_t worker = 0;
  std::int64_t replicas = 1;  ///< of this worker; all have as many
};

/// Sizes of the batches that a worker's replicas get in turn, of a global batch that all workers share.
/// With N = workers * replicas, f = global / N and c = global - f N, worker 0 has c times f + 1 and then f;
/// worker w has the same, rotated left by w * replicas. So each worker's sizes add up to the global batch,
/// those of each step over all workers too, and no two differ by more than 1.
/// {global 7, 2 workers, 2 replicas}: [2, 2, 2, 1] and [2, 1, 2, 2].
CAPSTAN_API std::vector<std::int64_t> batch_sizes_for_worker(std::int64_t global_batch_size,
                                                             const InputPlace& place);

namespace data {

/// `root` as pipeline `index` of `count` is to read it. `pieces` is how many replicas share a batch, for a
/// rebatch that is sharded by data; 0: all of `count`.
CAPSTAN_API OperatorPointer auto_sharded(const OperatorPointer& root, AutoShardPolicy policy,
                                         std::int64_t count, std::int64_t index, std::int64_t pieces);
CAPSTAN_API void check(const InputOptions& options);
CAPSTAN_API void check(const InputPlace& place);

}  // namespace data

/// `dataset` as pipeline `index` of `count` is to read it. The only one reads all, by every policy.
///
/// By file: the pipeline's readers and the names of list_files that an interleave opens keep every count-th
/// file. Throws Error(not_found) when some source is neither; Error(invalid_argument) when there are fewer
/// files than pipelines and this one would have one, while a pipeline without a file reads nothing. By data:
/// the elements are sharded at the end of the pipeline, before what is prefetched there; an iterator that has
/// an element throws Error(invalid_argument) when there are fewer elements than pipelines.
template <class T>
Dataset<T> auto_shard(const Dataset<T>& dataset, AutoShardPolicy policy, std::int64_t count,
                      std::int64_t index, std::int64_t replicas = 0) {
  return Dataset<T>(data::node_as<T>(data::auto_sharded(dataset.node(), policy, count, index, replicas)));
}

/// Groups of `replicas` elements, by replica. At the end replicas without a batch get an empty one; what is
/// left over of batches that are always full (drop_remainder), and of elements that are no batches, is
/// dropped.
template <class T>
Dataset<PerReplica<T>> deal_out(const Dataset<T>& dataset, std::int64_t replicas) {
  return Dataset<PerReplica<T>>(std::make_shared<data::GroupNode<T>>(dataset.node(), replicas));
}

/// A dataset for the replicas of a worker. It is read where it is made: a function that
/// `create_per_worker_dataset` is given returns it. Reading it directly is an error, as in TensorFlow.
template <class B>
class DistributedDataset {
 public:
  using Element = PerReplica<B>;

  explicit DistributedDataset(Dataset<PerReplica<B>> steps) : steps_(std::move(steps)) {}

  /// What create_per_worker_dataset uses.
  operator Iterator<Element>() const {
    return steps_.make_iterator();
  }  // NOLINT(google-explicit-constructor)

  /// Throws Error(invalid_argument).
  Iterator<Element> make_iterator() const { refuse(); }
  Element* begin() const { refuse(); }
  Element* end() const { refuse(); }

  /// The pipeline underneath.
  const Dataset<Element>& steps() const noexcept { return steps_; }

 private:
  [[noreturn]] static void refuse() {
    throw Error(
        Code::invalid_argument,
        "a distributed dataset can only be iterated through create_per_worker_dataset: return it from "
        "the function that is given to it");
  }
  Dataset<Element> steps_;
};

/// The batches of `dataset` are global: each is cut into one a replica, by batch_sizes_for_worker, or into
/// equal parts rounded up where the size of the batches is not known (behind a map, say). The last ones may
/// be smaller, down to empty. With more than one worker the pipelines share the data by the policy. Throws
/// Error: unimplemented for per_replica; invalid_argument for options that make no sense.
template <Batch B>
DistributedDataset<B> distribute_dataset(const Dataset<B>& dataset, const InputPlace& place,
                                         const InputOptions& options = {}) {
  data::check(options);
  data::check(place);
  if (options.replication_mode == InputReplicationMode::per_replica) {
    throw Error(Code::unimplemented,
                "InputReplicationMode::per_replica is for distribute_datasets_from_function only");
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

/// Throws Error(invalid_argument) for numbers that make no sense.
CAPSTAN_API void check(const InputContext& context, std::int64_t replicas);

/// What make(context) gives for `replicas` replicas, by replica; per_replica: for each replica by a call of
/// its own.
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
  // One element of each in turn: what ends early is filled up with empty batches.
  return Dataset<PerReplica<T>>(std::make_shared<SideBySideNode<T>>(std::move(pipelines)));
}

}  // namespace data

/// `make(context)` gives a Dataset of batches for one replica each (or of other elements); a step takes as
/// many as there are `replicas` that this pipeline feeds: unless told, all that are in sync. With per_replica
/// it is called for each of them, whose pipelines count as so many. The dataset is neither cut nor sharded:
/// that is up to the function. Throws Error(invalid_argument) for options or numbers that make no sense.
template <class F>
auto distribute_datasets_from_function(F make, const InputContext& context, const InputOptions& options = {},
                                       std::optional<std::int64_t> replicas = {}) {
  data::check(options);
  auto steps = data::steps_from_function(make, context, options.replication_mode, replicas);
  return DistributedDataset(steps.prefetch(options.per_replica_buffer_size));
}

// --- The calls of the early generations
// -------------------------------------------------------------------------

/// contrib's make_dataset_iterator: the batches of `dataset` are for one replica each, and a step takes as
/// many as there are replicas.
template <class T>
Iterator<PerReplica<T>> make_dataset_iterator(const Dataset<T>& dataset, std::int64_t replicas) {
  return deal_out(dataset, replicas).make_iterator();
}

/// The same for the dataset that make(context) gives, or with per_replica for one of each replica.
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

/// The arrays of a batch as one array with a new first axis, for Dataset::batch_as. Throws
/// Error(invalid_argument) when their shapes differ, or when there are none.
template <class T>
Array<T> stack(std::vector<Array<T>> rows) {
  if (rows.empty()) throw Error(Code::invalid_argument, "stack: no arrays were given");
  Array<T> stacked = std::move(rows[0]);
  const Shape shape = stacked.shape;
  stacked.shape.insert(stacked.shape.begin(), static_cast<std::int64_t>(rows.size()));
  stacked.values.reserve(stacked.values.size() * rows.size());
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].shape != shape) {
      throw Error(Code::invalid_argument, "stack: the arrays have shapes " + to_string(shape) + " and " +
                                              to_string(rows[i].shape) + "; they must be the same");
    }
    stacked.values.insert(stacked.values.end(), rows[i].values.begin(), rows[i].values.end());
  }
  return stacked;
}

namespace detail {

/// Row `i` of an array along axis 0, or of each array of a pair or tuple.
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

/// Makes row i of arrays that its copies share.
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

/// The counterpart of make_numpy_dataset: the rows of an array along axis 0, or of a pair or tuple of arrays
/// with as many rows. Throws Error(invalid_argument) for a scalar and when the numbers of rows differ.
template <Batch Arrays>
Dataset<Arrays> make_array_dataset(Arrays arrays) {
  const std::int64_t rows = BatchOf<Arrays>::size(arrays);
  return Dataset<std::int64_t>::range(rows).map(
      detail::RowOf<Arrays>{std::make_shared<const Arrays>(std::move(arrays))});
}

}  // namespace capstan

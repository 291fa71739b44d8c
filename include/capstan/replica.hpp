// replica.hpp -- Replicas: runs a function on every replica of a worker; reduces and gathers the results.
//
// A worker's replicas are `--replicas` host threads. The main program makes these calls on its
// ParameterServerStrategy; a function scheduled on a worker, which has no strategy, on `get_replicas()`:
//
//   double step(const Batch& batch) {
//     auto replicas = capstan::get_replicas();
//     const auto losses = replicas.run([&](ReplicaContext& replica) { return loss(batch, replica); });
//     return replicas.reduce(ReduceOp::MEAN, losses);
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/data/batch_of.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/detail/replica_context.hpp"
#include "capstan/detail/select_replica.hpp"

namespace capstan {

class AnyVariable;
class Counter;
struct InputOptions;
enum class InputReplicationMode : std::uint8_t;
template <class T>
class Dataset;
template <class B>
class DistributedDataset;
template <class T>
class Iterator;

/// Argument of the function that is passed to distribute_values_from_function.
struct ValueContext {
  int replica_id_in_sync_group = 0;
  int num_replicas_in_sync = 1;
};

/// Options of `run` for TPUs, accepted without effect, as in TensorFlow on CPUs and GPUs. Shapes of batches
/// may differ from step to step in any case.
struct RunOptions {
  bool experimental_enable_dynamic_batch_size = true;
  bool experimental_bucketizing_dynamic_shape = false;
};

/// The replicas of a worker. A handle: copies refer to the same replicas. Used by the thread that runs the
/// program or the closure. On the coordinator, `run` and `reduce` use threads of the coordinator and log a
/// warning once.
///
/// All calls throw Error(failed_precondition) inside `run`: they are for the thread that calls `run`.
class CAPSTAN_API Replicas {
 public:
  explicit Replicas(strategy::ReplicaGroup& group) noexcept : group_(&group) {}

  int num_replicas_in_sync() const noexcept;

  /// Calls fn(args...) concurrently, once per replica. A PerReplica among the arguments, or within a tuple,
  /// pair, vector or map, is replaced by the replica's own value. fn may take a ReplicaContext& first. Blocks
  /// until all calls have ended. Returns a PerReplica of the results; with one replica, it converts
  /// implicitly to the value. Throws the error of the lowest-numbered replica that threw; Error:
  /// invalid_argument for a PerReplica with another number of values, failed_precondition inside a run.
  template <class F, class... Args>
  requires(!std::is_same_v<std::remove_cvref_t<F>, RunOptions>) auto run(F&& fn, const Args&... args) const {
    using Result =
        std::decay_t<decltype(detail::call_on_replica(fn, std::declval<ReplicaContext&>(), args...))>;
    if constexpr (std::is_void_v<Result>) {
      run_each([&](ReplicaContext& replica) { detail::call_on_replica(fn, replica, args...); });
    } else {
      std::vector<std::optional<Result>> results(static_cast<std::size_t>(num_replicas_in_sync()));
      run_each([&](ReplicaContext& replica) {
        results[static_cast<std::size_t>(replica.replica_id_in_sync_group())].emplace(
            detail::call_on_replica(fn, replica, args...));
      });
      PerReplica<Result> values;
      for (auto& result : results) values.values.push_back(std::move(*result));
      return values;
    }
  }

  template <class F, class... Args>
  auto run(const RunOptions&, F&& fn, const Args&... args) const {
    return run(std::forward<F>(fn), args...);
  }
  /// For tf.contrib compatibility: run(fn, iterator.next()), or run(fn).
  template <class F, class T>
  auto experimental_run(F&& fn, Iterator<T>& iterator) const {
    return run(std::forward<F>(fn), iterator.next());
  }
  template <class F>
  auto experimental_run(F&& fn) const {
    return run(std::forward<F>(fn));
  }

  /// The sum or mean across replicas; reduce.hpp lists the types. `op` is ReduceOp::SUM, ReduceOp::MEAN, or a
  /// string ("sum"). The mean of integers is a double. A plain value counts as equal on every replica: its
  /// mean is the value, and its sum over several replicas is rejected unless the value is 0. Throws
  /// Error(invalid_argument) for values whose shapes, sizes or keys differ.
  template <class Op, class T>
  auto reduce(const Op& op, const PerReplica<T>& value) const {
    before_reduce();
    return reduce_values<false>(detail::OpOf<Op>(op), value, {});
  }
  template <class Op, OneValue T>
  auto reduce(const Op& op, const T& value) const {
    before_reduce();
    return reduce_plain(detail::OpOf<Op>(op), value);
  }
  /// As above, and also reduces along axes of each replica's array. A mean divides by the total number of
  /// elements of all replicas, so it is exact for parts of different sizes. The result of an Array lacks
  /// these axes; that of a vector is a number. Throws Error(invalid_argument) for an axis that the value does
  /// not have.
  template <class Op, class T>
  auto reduce(const Op& op, const T& value, const Axes& axis) const {
    before_reduce();
    if constexpr (IsPerReplica<T>::value) {
      return reduce_values<true>(detail::OpOf<Op>(op), value, axis);
    } else {
      const auto copies = static_cast<std::size_t>(num_replicas_in_sync());
      return reduce_values<true>(detail::OpOf<Op>(op), PerReplica<T>{std::vector<T>(copies, value)}, axis);
    }
  }
  template <class Op, class T>
  auto reduce(const Op& op, const T& value, std::nullopt_t) const {
    return reduce(op, value);
  }
  /// As reduce, with the result on one worker. Throws Error(invalid_argument) unless `worker` is the calling
  /// worker: workers do not combine values with each other.
  template <class Op, class T>
  auto reduce_to(const Op& op, const T& value, int worker) const {
    require_own_worker(worker);
    return reduce(op, value);
  }
  /// reduce_to for each pair, in that order. If a destination is another worker, throws as reduce_to does
  /// before reducing any value.
  template <class Op, class T>
  auto batch_reduce_to(const Op& op, const std::vector<std::pair<T, int>>& values_and_workers) const {
    for (const auto& [value, worker] : values_and_workers) require_own_worker(worker);
    std::vector<decltype(reduce(op, std::declval<const T&>()))> results;
    for (const auto& [value, worker] : values_and_workers) results.push_back(reduce(op, value));
    return results;
  }

  /// Concatenates the replicas' arrays along `axis`, in replica order. A plain value is returned unchanged.
  /// Throws Error: invalid_argument for scalars, ranks that differ, an axis that does not exist, and sizes
  /// that differ along another axis; unimplemented for IndexedSlices.
  template <class T>
  T gather(const PerReplica<T>& value, std::int64_t axis) const {
    require_cross_replica("gather", "all_gather");
    return detail::gather_parts<T>(pointers(value), axis);
  }
  template <OneValue T>
  T gather(const T& value, std::int64_t axis) const {
    return gather(PerReplica<T>{{value}}, axis);
  }

  /// Returns this worker's values, by replica; for a plain value, the value.
  template <class T>
  std::vector<T> local_results(const PerReplica<T>& value) const {
    return value.values;
  }
  template <OneValue T>
  std::vector<T> local_results(const T& value) const {
    return {value};
  }

  /// Calls value_fn(ValueContext) for each replica, sequentially on the calling thread.
  template <class F>
  auto distribute_values_from_function(F&& value_fn) const {
    require_cross_replica("distribute_values_from_function", "the replica's own function");
    PerReplica<std::decay_t<std::invoke_result_t<F&, ValueContext>>> values;
    const int replicas = num_replicas_in_sync();
    for (int replica = 0; replica < replicas; ++replica) {
      values.values.push_back(value_fn(ValueContext{replica, replicas}));
    }
    return values;
  }

  // Input for these replicas (include capstan/input.hpp). The iterator returns a PerReplica per step, for
  // `run`. Called on the worker that reads, in the function passed to create_per_worker_dataset.

  /// Cuts each global batch of `dataset` into one batch per replica. The sizes differ by at most 1; if the
  /// size of the batches is not known (after a map, for instance), the parts are equal and rounded up, and
  /// the last ones may be smaller or empty. Workers do not share the data. Throws Error: unimplemented for
  /// InputReplicationMode::per_replica; invalid_argument for invalid options.
  template <Batch B>
  DistributedDataset<B> distribute_dataset(const Dataset<B>& dataset, const InputOptions& options) const;
  template <Batch B>
  DistributedDataset<B> distribute_dataset(const Dataset<B>& dataset) const;
  /// make(InputContext) returns a Dataset whose elements, usually batches, are for one replica each; a step
  /// takes one element per replica. The context has one pipeline and this worker's number of replicas. With
  /// InputReplicationMode::per_replica, make is called once per replica, each time for a pipeline of its own.
  template <class F>
  auto distribute_datasets_from_function(F make, const InputOptions& options) const;
  template <class F>
  auto distribute_datasets_from_function(F make) const;
  /// Calls of earlier generations of TensorFlow: each element of `dataset`, or of the dataset that
  /// make(InputContext) returns, is for one replica.
  template <class T>
  Iterator<PerReplica<T>> make_dataset_iterator(const Dataset<T>& dataset) const;
  template <class F>
  auto make_input_fn_iterator(F make, InputReplicationMode replication_mode) const;
  template <class F>
  auto make_input_fn_iterator(F make) const;

  /// Calls fn(variable, args...) once, with replica 0's value in place of each PerReplica argument.
  template <class V, class F, class... Args>
  auto update(const V& variable, F&& fn, const Args&... args) const {
    require_cross_replica("update", "merge_call");
    return fn(variable, detail::select_replica(args, 0, 0)...);
  }
  /// As update, for state that belongs to no variable.
  template <class F, class... Args>
  auto update_non_slot(F&& fn, const Args&... args) const {
    require_cross_replica("update_non_slot", "merge_call");
    return fn(detail::select_replica(args, 0, 0)...);
  }
  /// The variable next to which an optimizer stores state that belongs to no variable: the first by name.
  /// Throws Error(invalid_argument) if `variables` is empty.
  template <class V>
  V non_slot_devices(const std::vector<V>& variables) const {
    if (variables.empty()) {
      throw Error(Code::invalid_argument, "non_slot_devices: found no variables, expected at least one");
    }
    const V* first = &variables.front();
    for (const V& variable : variables) {
      if (variable.name() < first->name()) first = &variable;
    }
    return *first;
  }
  /// Calls fn() once on this worker. Inside `run`, use ReplicaContext::on_first_replica.
  template <class F>
  auto on_first_replica(F&& fn) const {
    require_cross_replica("on_first_replica", "ReplicaContext::on_first_replica");
    return fn();
  }

  /// Logical devices are parts of a TPU. These always throw Error(unimplemented).
  template <class T>
  T experimental_assign_to_logical_device(const T&, int) const {
    throw only_on_tpus("experimental_assign_to_logical_device");
  }
  template <class T>
  T experimental_replicate_to_logical_devices(const T&) const {
    throw only_on_tpus("experimental_replicate_to_logical_devices");
  }
  template <class T>
  T experimental_split_to_logical_devices(const T&, const std::vector<std::int64_t>&) const {
    throw only_on_tpus("experimental_split_to_logical_devices");
  }

  /// Suppresses the warning of `run` and `reduce` on the coordinator: for tests of a function before it is
  /// scheduled.
  void allow_run_without_coordinator(bool allow = true) const;

  /// Returns whether both refer to the same replicas: those of one strategy, on one rank.
  friend bool operator==(const Replicas& a, const Replicas& b) noexcept { return a.group_ == b.group_; }

 protected:
  Replicas() noexcept = default;
  void set_group(strategy::ReplicaGroup& group) noexcept { group_ = &group; }

 private:
  void run_each(const std::function<void(ReplicaContext&)>& body) const;
  void before_reduce() const;
  void require_cross_replica(const char* call, const char* instead) const;
  void require_own_worker(int worker) const;
  /// Number of replicas, for input created outside of `run`.
  std::int64_t replicas_of_input(const char* call) const;
  static Error only_on_tpus(const char* call);

  template <class T>
  static std::vector<const T*> pointers(const PerReplica<T>& value) {
    std::vector<const T*> parts;
    for (const T& part : value.values) parts.push_back(&part);
    return parts;
  }
  template <bool kAlong, class Op, class T>
  static auto reduce_values(Op op, const PerReplica<T>& value, const Axes& axes) {
    return detail::reduce_parts<Op, kAlong, T>(op, pointers(value), axes);
  }
  template <class Op, class T>
  auto reduce_plain(Op op, const T& value) const {
    auto one = reduce_values<false>(op, PerReplica<T>{{value}}, {});
    if (detail::is_mean(op) || num_replicas_in_sync() == 1) return one;
    const auto sum = reduce_values<false>(ReduceOp::SUM, PerReplica<T>{{value, value}}, {});
    if constexpr (requires { sum == value; }) {
      if (sum == value) return one;  // 0 is the sum of any number of zeros
    }
    throw Error(Code::invalid_argument,
                "reduce SUM: found a plain value, which is the same on each of the " +
                    std::to_string(num_replicas_in_sync()) +
                    " replicas, expected a PerReplica; pass a PerReplica, or use MEAN");
  }

  strategy::ReplicaGroup* group_ = nullptr;
};

/// The replicas of the calling thread's rank. Throws Error(failed_precondition) on a thread that neither made
/// a strategy nor runs a closure.
CAPSTAN_API Replicas get_replicas();

/// Returns the strategy in use, as tf.distribute.get_strategy() does: inside `run`, the replica's strategy;
/// otherwise the strategy of this thread's innermost scope; otherwise, in a function on a worker, the
/// strategy that scheduled the function. Without any of these, returns the default strategy of the process:
/// one replica on the calling thread, and variables in the process. One thread at a time may use its `run`.
///
/// A ParameterServerStrategy is a Replicas, so `get_strategy() == strategy` in its scope.
CAPSTAN_API Replicas get_strategy();
/// Returns whether get_strategy() would return another strategy than the default one.
CAPSTAN_API bool has_strategy() noexcept;

namespace detail {

/// Objects that replicas share already: a merge_call's function receives them as they are.
template <class T>
concept OnPs = std::is_base_of_v<AnyVariable, T> || std::is_same_v<T, Counter>;
template <class T>
using Merged = std::conditional_t<OnPs<T>, T, PerReplica<T>>;

}  // namespace detail

template <class F, class... Args>
auto ReplicaContext::merge_call(F&& fn, const Args&... args) const {
  // fn and args of each replica; replica 0's fn is called.
  using Given = std::tuple<std::remove_reference_t<F>*, const Args*...>;
  const Given given(&fn, &args...);
  const auto merge = [this](detail::Parts<Given> parts) {
    const detail::CrossReplicaScope scope;
    Replicas replicas = detail::replicas_of(*group_);
    const auto merged = [&]<std::size_t k>(std::integral_constant<std::size_t, k>) {
      using Arg = std::remove_cvref_t<decltype(*std::get<k>(*parts[0]))>;
      if constexpr (detail::OnPs<Arg>) {
        return *std::get<k>(*parts[0]);
      } else {
        PerReplica<Arg> values;
        for (const Given* part : parts) values.values.push_back(*std::get<k>(*part));
        return values;
      }
    };
    return [&]<std::size_t... k>(std::index_sequence<k...>) {
      auto& function = *std::get<0>(*parts[0]);
      if constexpr (std::is_invocable_v<decltype(function), Replicas&, detail::Merged<Args>...>) {
        return function(replicas, merged(std::integral_constant<std::size_t, k + 1>())...);
      } else {
        return function(merged(std::integral_constant<std::size_t, k + 1>())...);
      }
    }
    (std::index_sequence_for<Args...>{});
  };
  using Result = decltype(run_collective("merge_call", given, merge));
  if constexpr (IsPerReplica<Result>::value) {
    Result values = run_collective("merge_call", given, merge);
    return detail::select_replica(values, replica_, replicas_);
  } else {
    return run_collective("merge_call", given, merge);
  }
}

}  // namespace capstan

// replica_context.hpp -- ReplicaContext: a replica's view of the others inside `run`, and collective calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "capstan/detail/export.hpp"
#include "capstan/detail/gather.hpp"
#include "capstan/detail/per_replica.hpp"
#include "capstan/detail/reduce.hpp"
#include "capstan/device.hpp"
#include "capstan/dtype.hpp"

namespace capstan {

class Replicas;
class ReplicaContext;
namespace strategy {
class ReplicaGroup;
}

namespace detail {

/// One replica's contribution to a collective call.
struct Collective {
  std::string name;  // must be equal on all replicas
  const std::type_info& type;
  const void* value;
  std::function<std::shared_ptr<const void>(std::span<const void* const>)> combine;
};

CAPSTAN_API std::shared_ptr<const void> run_collective(strategy::ReplicaGroup& group, int replica,
                                                       const Collective& call);

/// Op if it is a compile-time operation (ReduceOp::Sum or ReduceOp::Mean), else ReduceOp.
template <class Op>
using OpOf =
    std::conditional_t<std::is_same_v<Op, ReduceOp::Sum>, ReduceOp::Sum,
                       std::conditional_t<std::is_same_v<Op, ReduceOp::Mean>, ReduceOp::Mean, ReduceOp>>;

/// While it lives, the calling thread counts as outside of any replica, because the function of a merge_call
/// runs for all replicas.
class CAPSTAN_API CrossReplicaScope {
 public:
  CrossReplicaScope() noexcept;
  ~CrossReplicaScope();
  CrossReplicaScope(const CrossReplicaScope&) = delete;
  CrossReplicaScope& operator=(const CrossReplicaScope&) = delete;

 private:
  ReplicaContext* replica_;
};

CAPSTAN_API Replicas replicas_of(strategy::ReplicaGroup& group);

/// Element types of collectives on GPUs. Reductions require Addable.
template <class T>
concept Shareable = std::is_same_v<T, std::uint8_t> || requires {
  DTypeOf<T>::value;
};
template <class T>
concept Addable = Shareable<T> && !std::is_same_v<T, bool>;
/// A byte is treated as a bool.
template <Shareable T>
constexpr DType shared_dtype() noexcept {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return DType::boolean;
  } else {
    return dtype_of<T>;
  }
}

/// A replica's operands of a collective on GPU memory: `size` elements at `in`, space for `capacity` at
/// `out`.
struct OnGpu {
  const void* in = nullptr;
  std::size_t size = 0;
  void* out = nullptr;
  std::size_t capacity = 0;
};

CAPSTAN_API int device_of(strategy::ReplicaGroup& group, int replica);
CAPSTAN_API const DeviceStream& stream_of(strategy::ReplicaGroup& group, int replica);
CAPSTAN_API void wait_for_gpu(strategy::ReplicaGroup& group, int replica);
CAPSTAN_API void all_reduce_on_gpus(strategy::ReplicaGroup& group, bool mean, DType dtype,
                                    std::span<const OnGpu> arrays);
CAPSTAN_API void all_gather_on_gpus(strategy::ReplicaGroup& group, DType dtype,
                                    std::span<const OnGpu> arrays);
CAPSTAN_API void broadcast_on_gpus(strategy::ReplicaGroup& group, int root, DType dtype,
                                   std::span<const OnGpu> arrays);

/// In-place operands, by replica.
template <class T>
std::vector<OnGpu> in_place(Parts<DeviceSpan<T>> parts) {
  std::vector<OnGpu> arrays;
  for (const auto* part : parts) arrays.push_back({part->data(), part->size(), part->data(), part->size()});
  return arrays;
}

}  // namespace detail

/// One replica's view during `run`. Used by the replica's own thread. All replicas must make the same
/// collective calls in the same order; each waits for the others, at most `--wait-timeout`. Collective calls
/// throw Error: deadline_exceeded naming the missing replicas; failed_precondition if another replica made a
/// different call or returned; aborted if another replica failed, whose error `run` then throws.
class ReplicaContext {
 public:
  ReplicaContext(strategy::ReplicaGroup& group, int replica, int replicas) noexcept
      : group_(&group), replica_(replica), replicas_(replicas) {}

  /// Number of this replica among the replicas of its worker, from 0: workers do not wait for each other.
  int replica_id_in_sync_group() const noexcept { return replica_; }
  int num_replicas_in_sync() const noexcept { return replicas_; }
  /// Internal: for the layers above and below, not for programs.
  strategy::ReplicaGroup& group() const noexcept { return *group_; }

  /// Returns the sum or mean of the values of all replicas to every replica. reduce.hpp lists the types.
  /// Result types and errors are the same as those of Replicas::reduce.
  template <class Op, class T>
  auto all_reduce(const Op& op, const T& value) const {
    return all_reduce_along<false>(detail::OpOf<Op>(op), value, {});
  }
  /// As above, and also reduces along axes of the value.
  template <class Op, class T>
  auto all_reduce(const Op& op, const T& value, const Axes& axis) const {
    return all_reduce_along<true>(detail::OpOf<Op>(op), value, axis);
  }
  template <class Op, class T>
  auto all_reduce(const Op& op, const T& value, std::nullopt_t) const {
    return all_reduce(op, value);
  }

  /// Returns the concatenation of all replicas' arrays along `axis`, in replica order, to every replica.
  /// Throws as Replicas::gather does.
  template <class T>
  T all_gather(const T& value, std::int64_t axis) const {
    return run_collective("all_gather along axis " + std::to_string(axis), value,
                          [axis](detail::Parts<T> parts) { return detail::gather_parts(parts, axis); });
  }

  // Collectives on GPUs (--replica-device=gpu). Each replica has one GPU and one stream. Work runs in the
  // stream's order, so kernels before and after need no synchronization. All replicas make the call, which
  // returns once the work is enqueued on all streams. If work fails on a GPU, or does not complete within
  // --wait-timeout, the work of all replicas is aborted: every replica gets the error from its next call or
  // wait, and `run` throws it; the next run starts afresh. Besides the errors above, they throw Error:
  // failed_precondition if replicas are host threads; invalid_argument naming the replicas whose sizes
  // differ; internal and deadline_exceeded naming GPUs.

  /// Number of the replica's GPU, which is the current CUDA device of this thread.
  int device() const { return detail::device_of(*group_, replica_); }
  /// The replica's stream, valid until `run` ends.
  const DeviceStream& stream() const { return detail::stream_of(*group_, replica_); }
  /// Blocks until all work enqueued on the stream is done. Unlike stream().wait(), it also ends, with an
  /// error, if another GPU has failed or the work does not complete.
  void wait() const { detail::wait_for_gpu(*group_, replica_); }

  /// Replaces each replica's elements by the sum or mean over all replicas. Integers wrap and have no mean.
  /// Simulated GPUs add in double, in replica order, and round once; the order of NCCL is unspecified.
  template <class Op, detail::Addable T>
  void all_reduce(const Op& op, DeviceSpan<T> values) const {
    const ReduceOp how(op);
    run_collective("all_reduce " + std::string(how.name()) + " on GPUs", values,
                   [&](detail::Parts<DeviceSpan<T>> parts) {
                     detail::all_reduce_on_gpus(*group_, how.mean(), detail::shared_dtype<T>(),
                                                detail::in_place(parts));
                   });
  }
  /// Concatenates the elements of all replicas, in replica order, into every replica's `out`.
  template <class S, detail::Shareable T>
  requires(std::is_same_v<std::remove_const_t<S>, T>) void all_gather(DeviceSpan<S> part,
                                                                      DeviceSpan<T> out) const {
    const std::pair<DeviceSpan<S>, DeviceSpan<T>> mine(part, out);
    run_collective(
        "all_gather on GPUs", mine, [&](detail::Parts<std::pair<DeviceSpan<S>, DeviceSpan<T>>> parts) {
          std::vector<detail::OnGpu> arrays;
          for (const auto* one : parts) {
            arrays.push_back({one->first.data(), one->first.size(), one->second.data(), one->second.size()});
          }
          detail::all_gather_on_gpus(*group_, detail::shared_dtype<T>(), arrays);
        });
  }
  /// Replaces every replica's elements by those of replica `root`.
  template <detail::Shareable T>
  void broadcast(DeviceSpan<T> values, int root) const {
    run_collective(
        "broadcast from replica " + std::to_string(root), values, [&](detail::Parts<DeviceSpan<T>> parts) {
          detail::broadcast_on_gpus(*group_, root, detail::shared_dtype<T>(), detail::in_place(parts));
        });
  }

  /// Reads all rows of a variable into every replica's `out`, as Variable::pull with a stream does: one read
  /// from the ps to replica 0's GPU, then a broadcast. V is a Variable.
  template <class V>
  void pull_once(const V& variable, DeviceSpan<typename V::element_type> out) const {
    using Span = DeviceSpan<typename V::element_type>;
    run_collective("pull_once of variable \"" + variable.name() + '"', out, [&](detail::Parts<Span> parts) {
      variable.pull(detail::stream_of(*group_, 0), 0, *parts[0]);
      detail::broadcast_on_gpus(*group_, 0, detail::shared_dtype<typename V::element_type>(),
                                detail::in_place(parts));
    });
  }
  /// Sums or averages all replicas' gradients of all rows of a variable; replica 0 pushes the result once for
  /// the worker, as Variable::push_dense with a stream does. Replaces every replica's `gradient` by the
  /// result.
  template <class Op, class V>
  void push_dense_once(const Op& op, const V& variable, DeviceSpan<typename V::element_type> gradient) const {
    using Span = DeviceSpan<typename V::element_type>;
    const ReduceOp how(op);
    run_collective(
        "push_dense_once of variable \"" + variable.name() + '"', gradient, [&](detail::Parts<Span> parts) {
          detail::all_reduce_on_gpus(*group_, how.mean(), detail::shared_dtype<typename V::element_type>(),
                                     detail::in_place(parts));
          detail::wait_for_gpu(*group_, 0);
          variable.push_dense(detail::stream_of(*group_, 0), *parts[0]);
        });
  }

  /// Calls fn(replicas, args...) once, outside of any replica, when all replicas have made the call. The
  /// function object is that of replica 0; fn may omit `replicas`. Each argument is a PerReplica of the
  /// replicas' arguments, except variables and counters, which are passed as they are. Returns the result to
  /// every replica; of a PerReplica result, each replica gets its own value.
  template <class F, class... Args>
  auto merge_call(F&& fn, const Args&... args) const;

  /// Calls fn() on replica 0 only, for work done once per worker, such as counting a step. Every replica
  /// waits for the result and returns it. fn must not make collective calls.
  template <class F>
  auto on_first_replica(F&& fn) const {
    using Result = std::decay_t<std::invoke_result_t<F&>>;
    if constexpr (std::is_void_v<Result>) {
      if (replica_ == 0) fn();
      run_collective("on_first_replica", 0, [](detail::Parts<int>) {});
    } else {
      std::optional<Result> mine;
      if (replica_ == 0) mine.emplace(fn());
      return run_collective("on_first_replica", mine,
                            [](detail::Parts<std::optional<Result>> parts) { return Result(**parts[0]); });
    }
  }

 private:
  template <bool kAlong, class Op, class T>
  auto all_reduce_along(Op op, const T& value, const Axes& axes) const {
    return run_collective(
        "all_reduce " + std::string(ReduceOp(op).name()) + axes.along(), value,
        [&](detail::Parts<T> parts) { return detail::reduce_parts<Op, kAlong, T>(op, parts, axes); });
  }

  /// Calls combine(pointers to all values, by replica) once; returns a copy of its result to every replica.
  template <class T, class Combine>
  auto run_collective(std::string name, const T& value, const Combine& combine) const {
    using Result = std::invoke_result_t<const Combine&, detail::Parts<T>>;
    const detail::Collective call{
        std::move(name), typeid(T), &value,
        [&combine](std::span<const void* const> values) -> std::shared_ptr<const void> {
          std::vector<const T*> parts;
          for (const void* part : values) parts.push_back(static_cast<const T*>(part));
          if constexpr (std::is_void_v<Result>) {
            combine(detail::Parts<T>(parts));
            return nullptr;
          } else {
            return std::make_shared<const Result>(combine(detail::Parts<T>(parts)));
          }
        }};
    const std::shared_ptr<const void> result = detail::run_collective(*group_, replica_, call);
    if constexpr (!std::is_void_v<Result>) return *static_cast<const Result*>(result.get());
  }

  strategy::ReplicaGroup* group_;
  int replica_;
  int replicas_;
};

/// The calling thread's replica. Throws Error(failed_precondition) outside of `run` and in a merge_call's
/// function.
CAPSTAN_API ReplicaContext& get_replica_context();
CAPSTAN_API bool in_replica_context() noexcept;

}  // namespace capstan

// replica_context.hpp -- what a function that `run` calls knows of the other replicas, and does with them.
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

/// One replica's part in a call that all make.
struct Collective {
  std::string name;  // what all must call
  const std::type_info& type;
  const void* value;
  std::function<std::shared_ptr<const void>(std::span<const void* const>)> combine;
};

CAPSTAN_API std::shared_ptr<const void> meet(strategy::ReplicaGroup& group, int replica,
                                             const Collective& call);

/// The op as far as the compiler knows it.
template <class Op>
using OpOf =
    std::conditional_t<std::is_same_v<Op, ReduceOp::Sum>, ReduceOp::Sum,
                       std::conditional_t<std::is_same_v<Op, ReduceOp::Mean>, ReduceOp::Mean, ReduceOp>>;

/// While it lives the calling thread is in no replica: a merge_call's function runs on behalf of all.
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

/// What GPUs share; they add those that are numbers.
template <class T>
concept Shareable = std::is_same_v<T, std::uint8_t> || requires {
  DTypeOf<T>::value;
};
template <class T>
concept Addable = Shareable<T> && !std::is_same_v<T, bool>;
/// A byte stands for a bool.
template <Shareable T>
constexpr DType shared_dtype() noexcept {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return DType::boolean;
  } else {
    return dtype_of<T>;
  }
}

/// A replica's part in a call on arrays in GPUs' memory: elements there are, and room there is for.
struct OnGpu {
  const void* in = nullptr;
  std::size_t size = 0;
  void* out = nullptr;
  std::size_t room = 0;
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

/// In place, by replica.
template <class T>
std::vector<OnGpu> in_place(Parts<DeviceSpan<T>> parts) {
  std::vector<OnGpu> arrays;
  for (const auto* part : parts) arrays.push_back({part->data(), part->size(), part->data(), part->size()});
  return arrays;
}

}  // namespace detail

/// One replica's view, during `run`. Its collective calls are made by all replicas, in the same order; each
/// waits for the others, `--wait-timeout` at most. They throw Error: deadline_exceeded naming the replicas
/// that did not come; failed_precondition when another replica made a different call, or returned;
/// aborted when another replica has failed, in which case `run` throws that one's error. Used by the
/// replica's own thread.
class ReplicaContext {
 public:
  ReplicaContext(strategy::ReplicaGroup& group, int replica, int replicas) noexcept
      : group_(&group), replica_(replica), replicas_(replicas) {}

  /// From 0. The group is one worker: workers do not wait for each other.
  int replica_id_in_sync_group() const noexcept { return replica_; }
  int num_replicas_in_sync() const noexcept { return replicas_; }
  /// For the layers above and below; not for programs.
  strategy::ReplicaGroup& group() const noexcept { return *group_; }

  /// The sum or mean of every replica's value, for every replica: see reduce.hpp for what a value may be,
  /// and Replicas::reduce for types and errors.
  template <class Op, class T>
  auto all_reduce(const Op& op, const T& value) const {
    return all_reduce_along<false>(detail::OpOf<Op>(op), value, {});
  }
  /// The same along axes of the value as well.
  template <class Op, class T>
  auto all_reduce(const Op& op, const T& value, const Axes& axis) const {
    return all_reduce_along<true>(detail::OpOf<Op>(op), value, axis);
  }
  template <class Op, class T>
  auto all_reduce(const Op& op, const T& value, std::nullopt_t) const {
    return all_reduce(op, value);
  }

  /// The arrays of all replicas, end to end along `axis` in the order of the replicas, for every replica.
  /// Throws as Replicas::gather.
  template <class T>
  T all_gather(const T& value, std::int64_t axis) const {
    return meet("all_gather along axis " + std::to_string(axis), value,
                [axis](detail::Parts<T> parts) { return detail::gather_parts(parts, axis); });
  }

  // On GPUs (--replica-device=gpu). Each replica has one, with a stream; what it calls here is done in that
  // stream's order, so that neither a kernel before it nor one after it needs a wait. All replicas make the
  // call, and it returns when the work has been given to all streams. What fails on a GPU, or is not done
  // within --wait-timeout, ends the work of all of them: every replica gets the error at its next call or
  // wait, and `run` throws it; the next run begins anew. Throw Error as the calls above, and:
  // failed_precondition for replicas that are host threads; invalid_argument naming the replicas whose sizes
  // differ; internal, deadline_exceeded naming GPUs.

  /// Its number. CUDA's own calls of this thread go there.
  int device() const { return detail::device_of(*group_, replica_); }
  /// The replica's own, until `run` ends.
  const DeviceStream& stream() const { return detail::stream_of(*group_, replica_); }
  /// Until all that was given to the stream is done: stream().wait() that ends, when another GPU has failed
  /// or nothing comes of it.
  void wait() const { detail::wait_for_gpu(*group_, replica_); }

  /// The sum or mean of all replicas' elements, in place of each's. Integers wrap around and have no mean.
  /// Stand-ins add in double, in the order of the replicas, and round once; NCCL has an order of its own.
  template <class Op, detail::Addable T>
  void all_reduce(const Op& op, DeviceSpan<T> values) const {
    const ReduceOp how(op);
    meet("all_reduce " + std::string(how.name()) + " on GPUs", values,
         [&](detail::Parts<DeviceSpan<T>> parts) {
           detail::all_reduce_on_gpus(*group_, how.mean(), detail::shared_dtype<T>(),
                                      detail::in_place(parts));
         });
  }
  /// The elements of all replicas, in their order, into everybody's `whole`.
  template <class S, detail::Shareable T>
  requires(std::is_same_v<std::remove_const_t<S>, T>) void all_gather(DeviceSpan<S> part,
                                                                      DeviceSpan<T> whole) const {
    const std::pair<DeviceSpan<S>, DeviceSpan<T>> mine(part, whole);
    meet("all_gather on GPUs", mine, [&](detail::Parts<std::pair<DeviceSpan<S>, DeviceSpan<T>>> parts) {
      std::vector<detail::OnGpu> arrays;
      for (const auto* of : parts) {
        arrays.push_back({of->first.data(), of->first.size(), of->second.data(), of->second.size()});
      }
      detail::all_gather_on_gpus(*group_, detail::shared_dtype<T>(), arrays);
    });
  }
  /// The elements of replica `root` in place of everybody's.
  template <detail::Shareable T>
  void broadcast(DeviceSpan<T> values, int root) const {
    meet("broadcast from replica " + std::to_string(root), values, [&](detail::Parts<DeviceSpan<T>> parts) {
      detail::broadcast_on_gpus(*group_, root, detail::shared_dtype<T>(), detail::in_place(parts));
    });
  }

  /// All rows of a variable into everybody's `out`, as Variable::pull with a stream: read from the ps once,
  /// to replica 0's GPU, and broadcast from there. V is a Variable.
  template <class V>
  void pull_once(const V& variable, DeviceSpan<typename V::element_type> out) const {
    using Span = DeviceSpan<typename V::element_type>;
    meet("pull_once of variable \"" + variable.name() + '"', out, [&](detail::Parts<Span> parts) {
      variable.pull(detail::stream_of(*group_, 0), 0, *parts[0]);
      detail::broadcast_on_gpus(*group_, 0, detail::shared_dtype<typename V::element_type>(),
                                detail::in_place(parts));
    });
  }
  /// The sum or mean of all replicas' gradients, for every row of a variable, pushed once for the worker by
  /// replica 0, as Variable::push_dense with a stream; every replica has it afterwards in place of its own.
  template <class Op, class V>
  void push_dense_once(const Op& op, const V& variable, DeviceSpan<typename V::element_type> gradient) const {
    using Span = DeviceSpan<typename V::element_type>;
    const ReduceOp how(op);
    meet("push_dense_once of variable \"" + variable.name() + '"', gradient, [&](detail::Parts<Span> parts) {
      detail::all_reduce_on_gpus(*group_, how.mean(), detail::shared_dtype<typename V::element_type>(),
                                 detail::in_place(parts));
      detail::wait_for_gpu(*group_, 0);
      variable.push_dense(detail::stream_of(*group_, 0), *parts[0]);
    });
  }

  /// fn(replicas, args...) once for all, outside of any replica, when all have called it; each argument is a
  /// PerReplica of what the replicas gave, but a variable and a counter stay what they are. fn may leave
  /// `replicas` out. Every replica gets the result, or its own part of a PerReplica. The function object is
  /// replica 0's.
  template <class F, class... Args>
  auto merge_call(F&& fn, const Args&... args) const;

  /// fn() on replica 0 alone: what is done once a worker, such as counting a step. Every replica waits for
  /// it and gets its result. fn makes no collective calls.
  template <class F>
  auto on_first_replica(F&& fn) const {
    using Result = std::decay_t<std::invoke_result_t<F&>>;
    if constexpr (std::is_void_v<Result>) {
      if (replica_ == 0) fn();
      meet("on_first_replica", 0, [](detail::Parts<int>) {});
    } else {
      std::optional<Result> mine;
      if (replica_ == 0) mine.emplace(fn());
      return meet("on_first_replica", mine,
                  [](detail::Parts<std::optional<Result>> parts) { return Result(**parts[0]); });
    }
  }

 private:
  template <bool kAlong, class Op, class T>
  auto all_reduce_along(Op op, const T& value, const Axes& axes) const {
    return meet("all_reduce " + std::string(ReduceOp(op).name()) + axes.along(), value,
                [&](detail::Parts<T> parts) { return detail::reduce_parts<Op, kAlong, T>(op, parts, axes); });
  }

  /// combine(pointers to all values, by replica), once; a copy of its result for everybody.
  template <class T, class Combine>
  auto meet(std::string name, const T& value, const Combine& combine) const {
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
    const std::shared_ptr<const void> result = detail::meet(*group_, replica_, call);
    if constexpr (!std::is_void_v<Result>) return *static_cast<const Result*>(result.get());
  }

  strategy::ReplicaGroup* group_;
  int replica_;
  int replicas_;
};

/// The calling thread's. Throws Error(failed_precondition) outside of `run`, and in a merge_call's function.
CAPSTAN_API ReplicaContext& get_replica_context();
CAPSTAN_API bool in_replica_context() noexcept;

}  // namespace capstan

// replica_context.hpp -- what a function that `run` calls knows of the other replicas, and does with them.
#pragma once

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

#include "capstan/gather.hpp"
#include "capstan/per_replica.hpp"
#include "capstan/reduce.hpp"

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

std::shared_ptr<const void> meet(strategy::ReplicaGroup& group, int replica, const Collective& call);

/// The op as far as the compiler knows it.
template <class Op>
using OpOf =
    std::conditional_t<std::is_same_v<Op, ReduceOp::Sum>, ReduceOp::Sum,
                       std::conditional_t<std::is_same_v<Op, ReduceOp::Mean>, ReduceOp::Mean, ReduceOp>>;

/// While it lives the calling thread is in no replica: a merge_call's function runs on behalf of all.
class CrossReplicaScope {
 public:
  CrossReplicaScope() noexcept;
  ~CrossReplicaScope();
  CrossReplicaScope(const CrossReplicaScope&) = delete;
  CrossReplicaScope& operator=(const CrossReplicaScope&) = delete;

 private:
  ReplicaContext* replica_;
};

Replicas replicas_of(strategy::ReplicaGroup& group);

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
ReplicaContext& get_replica_context();
bool in_replica_context() noexcept;

}  // namespace capstan

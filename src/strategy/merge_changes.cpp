// merge_changes.cpp -- adds in the order of the replicas, so that sums are the same in every run.
#include "strategy/merge_changes.hpp"

#include <fmt/format.h>

#include <typeinfo>
#include <vector>

#include "base/with_type.hpp"
#include "capstan/detail/replica_context.hpp"
#include "capstan/dtype.hpp"
#include "capstan/error.hpp"
#include "strategy/replica_group.hpp"

namespace capstan::strategy {
namespace {

using Changes = std::span<const RowChange* const>;

void check(const protocol::VariableDescriptor& variable, const RowChange& change, int replicas) {
  const VariableAggregation aggregation = variable.aggregation;
  const auto refuse = [&](Code code, const std::string& why) {
    throw Error(code, fmt::format("{} of variable \"{}\" by {} replicas, and its aggregation is {}: {}",
                                  name_of(change.op, change.scatter), variable.name, replicas,
                                  to_string(aggregation), why));
  };
  if (aggregation == VariableAggregation::only_first_replica) return;
  if (aggregation == VariableAggregation::none) {
    refuse(Code::invalid_argument,
           "create it with sum, mean or only_first_replica, or call this outside of run");
  }
  if (variable.dtype == DType::boolean) refuse(Code::invalid_argument, "bools have neither sum nor mean");
  if (aggregation == VariableAggregation::mean && !is_floating(variable.dtype)) {
    refuse(Code::invalid_argument,
           fmt::format("the mean would not be {}; use a floating-point dtype", to_string(variable.dtype)));
  }
  using Op = protocol::RowOp;
  if (change.scatter && (change.op == Op::set || change.op == Op::min || change.op == Op::max)) {
    refuse(Code::unimplemented,
           "of scatter operations, only add, sub, mul and div have one; use only_first_replica");
  }
}

void require_same_rows(const protocol::VariableDescriptor& variable, Changes all) {
  const RowChange& first = *all.front();
  for (std::size_t replica = 1; replica < all.size(); ++replica) {
    if (all[replica]->first_row == first.first_row && all[replica]->elements == first.elements) continue;
    throw Error(Code::invalid_argument,
                fmt::format("{} of variable \"{}\": replica {} has {} elements from row {} on, replica 0 has "
                            "{} from row {} on; the replicas must change the same rows",
                            name_of(first.op, false), variable.name, replica, all[replica]->elements,
                            all[replica]->first_row, first.elements, first.first_row));
  }
}

template <class T>
std::span<const T> values_of(const RowChange& change) {
  return {static_cast<const T*>(change.values), change.elements};
}

template <class T>
std::vector<T> summed(Changes all, bool mean) {
  using Sum = detail::SumOf<T>;
  std::vector<T> out(all.front()->elements);
  for (std::size_t i = 0; i < out.size(); ++i) {
    Sum sum{};
    for (const RowChange* change : all) sum += static_cast<Sum>(values_of<T>(*change)[i]);
    out[i] = detail::finish_sum<detail::SameType, T>({mean}, sum, static_cast<std::int64_t>(all.size()));
  }
  return out;
}

/// Returns the values of all replicas, concatenated; for a mean, divided by the number of replicas.
template <class T>
std::vector<T> joined(Changes all, bool mean) {
  const auto count = static_cast<std::int64_t>(all.size());
  std::vector<T> out;
  for (const RowChange* change : all) {
    for (const T value : values_of<T>(*change)) {
      out.push_back(
          detail::finish_sum<detail::SameType, T>({mean}, static_cast<detail::SumOf<T>>(value), count));
    }
  }
  return out;
}

void apply_merged(const protocol::VariableDescriptor& variable, Changes all,
                  const std::function<void(const RowChange&)>& apply) {
  RowChange merged = *all.front();
  if (variable.aggregation == VariableAggregation::only_first_replica) return apply(merged);
  std::vector<std::int64_t> ids;
  if (merged.scatter) {
    for (const RowChange* change : all) ids.insert(ids.end(), change->ids.begin(), change->ids.end());
    merged.ids = ids;
  } else {
    require_same_rows(variable, all);
  }
  const bool mean = variable.aggregation == VariableAggregation::mean;
  with_type(variable.dtype, [&]<class T>(std::type_identity<T>) {
    const std::vector<T> values = merged.scatter ? joined<T>(all, mean) : summed<T>(all, mean);
    merged.values = values.data();
    merged.elements = values.size();
    apply(merged);
  });
}

}  // namespace

std::string name_of(protocol::RowOp op, bool scatter) {
  constexpr const char* kNames[] = {"push", "update", "add", "sub", "mul", "div", "min", "max"};
  const std::string name = kNames[static_cast<std::size_t>(op)];
  if (scatter) return "scatter_" + name;
  return op == protocol::RowOp::set ? "assign" : "assign_" + name;
}

bool among_replicas() noexcept {
  return in_replica_context() && get_replica_context().num_replicas_in_sync() > 1;
}

void require_one_thread(const std::string& what) {
  if (!among_replicas()) return;
  throw Error(Code::failed_precondition,
              fmt::format("{} is created inside run by each of {} replicas; create it before run", what,
                          get_replica_context().num_replicas_in_sync()));
}

std::shared_ptr<const void> make_once(const std::string& call,
                                      const std::function<std::shared_ptr<const void>()>& make) {
  const ReplicaContext& replica = get_replica_context();
  const detail::Collective collective{call, typeid(make), &make,
                                      [&](std::span<const void* const>) -> std::shared_ptr<const void> {
                                        const detail::CrossReplicaScope scope;
                                        return make();
                                      }};
  return replica.group().rendezvous().run_collective(replica.replica_id_in_sync_group(), collective);
}

void merge_changes(const protocol::VariableDescriptor& variable, const RowChange& mine,
                   const std::function<void(const RowChange&)>& apply) {
  const ReplicaContext& replica = get_replica_context();
  check(variable, mine, replica.num_replicas_in_sync());
  const detail::Collective call{
      fmt::format("{} of variable \"{}\"", name_of(mine.op, mine.scatter), variable.name), typeid(RowChange),
      &mine, [&](std::span<const void* const> given) -> std::shared_ptr<const void> {
        const detail::CrossReplicaScope scope;
        std::vector<const RowChange*> all;
        for (const void* change : given) all.push_back(static_cast<const RowChange*>(change));
        apply_merged(variable, all, apply);
        return nullptr;
      }};
  replica.group().rendezvous().run_collective(replica.replica_id_in_sync_group(), call);
}

}  // namespace capstan::strategy

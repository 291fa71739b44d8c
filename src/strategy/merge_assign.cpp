// merge_assign.cpp -- sums in the order of the replicas, so that they are the same in every run.
#include "strategy/merge_assign.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/with_type.hpp"
#include "capstan/error.hpp"
#include "capstan/replica.hpp"

namespace capstan::strategy {
namespace {

template <class T>
std::vector<T> merged(const std::vector<std::vector<T>>& all, VariableAggregation aggregation) {
  if (aggregation == VariableAggregation::only_first_replica) return all.front();
  using A = Arithmetic<T>;
  std::vector<T> out(all.front().size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    A sum{};
    for (const auto& values : all) sum = static_cast<A>(sum + static_cast<A>(values[i]));
    if (aggregation == VariableAggregation::mean) sum = static_cast<A>(sum / static_cast<A>(all.size()));
    out[i] = static_cast<T>(sum);
  }
  return out;
}

void require_the_same(const std::vector<std::string>& calls) {
  for (std::size_t other = 1; other < calls.size(); ++other) {
    if (calls[other] == calls[0]) continue;
    throw Error(Code::failed_precondition,
                fmt::format("replica {} calls {} where replica 0 calls {}; every replica must make the same "
                            "calls",
                            other, calls[other], calls[0]));
  }
}

}  // namespace

bool among_replicas() noexcept {
  return in_replica_context() && get_replica_context().num_replicas_in_sync() > 1;
}

void merge_assign(const shard::VariableDescriptor& variable, const std::string& what, const void* values,
                  std::size_t elements, const std::function<void(const void*)>& apply) {
  ReplicaContext& replica = get_replica_context();
  if (variable.aggregation == VariableAggregation::none) {
    throw Error(
        Code::invalid_argument,
        fmt::format("variable \"{}\" is assigned by {} replicas and its aggregation is none; create it with "
                    "sum, mean or only_first_replica, or assign to it outside of run",
                    variable.name, replica.num_replicas_in_sync()));
  }
  if (variable.dtype == DType::boolean && variable.aggregation != VariableAggregation::only_first_replica) {
    throw Error(Code::invalid_argument,
                fmt::format("variable \"{}\" is assigned by {} replicas and its aggregation is {}; of bools "
                            "there is only_first_replica alone",
                            variable.name, replica.num_replicas_in_sync(), to_string(variable.aggregation)));
  }
  const std::string call = fmt::format("{} of variable \"{}\", {} elements", what, variable.name, elements);
  with_type(variable.dtype, [&]<class T>(std::type_identity<T>) {
    const auto* from = static_cast<const T*>(values);
    replica.merge_call(
        [&](const PerReplica<std::string>& calls, const PerReplica<std::vector<T>>& all) {
          require_the_same(calls.values);
          apply(merged(all.values, variable.aggregation).data());
        },
        call, std::vector<T>(from, from + elements));
  });
}

}  // namespace capstan::strategy

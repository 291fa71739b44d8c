// merge_assign.hpp -- what the replicas of a worker assign to one variable at the same time, as one
// assignment.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "shard/descriptor.hpp"

namespace capstan::strategy {

/// The calling thread is one of several replicas.
bool among_replicas() noexcept;

/// Called by all replicas of a worker: `apply`, replica 0's, is called once with the values that the
/// variable's aggregation makes of theirs. `what` says what is assigned where, beside the variable and the
/// number of elements. Throws Error: invalid_argument when the variable has no aggregation, and for a sum of
/// bools; failed_precondition when the replicas do not assign the same. REQUIRES: among_replicas().
void merge_assign(const shard::VariableDescriptor& variable, const std::string& what, const void* values,
                  std::size_t elements, const std::function<void(const void*)>& apply);

}  // namespace capstan::strategy

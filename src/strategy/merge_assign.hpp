// merge_assign.hpp -- what the replicas of a worker assign to one variable at the same time, as one
// assignment.
#pragma once

#include <cstddef>
#include <functional>

#include "shard/descriptor.hpp"

namespace capstan::strategy {

/// The calling thread is one of several replicas.
bool among_replicas() noexcept;

/// Called by all replicas of a worker: `apply`, replica 0's, is called once with the values that the
/// variable's aggregation makes of theirs. Throws Error(invalid_argument) when it has none. REQUIRES:
/// among_replicas().
void merge_assign(const shard::VariableDescriptor& variable, const void* values, std::size_t elements,
                  const std::function<void(const void*)>& apply);

}  // namespace capstan::strategy

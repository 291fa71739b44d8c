// merge_changes.hpp -- combines the changes that a worker's replicas make to one variable into one change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "protocol/descriptor.hpp"
#include "protocol/push_format.hpp"

namespace capstan::strategy {

/// An operation on some rows: the rows `ids` of a scatter operation, or consecutive rows from first_row on.
struct RowChange {
  protocol::RowOp op = protocol::RowOp::set;
  bool scatter = false;
  std::span<const std::int64_t> ids;
  std::uint64_t first_row = 0;
  const void* values = nullptr;
  std::size_t elements = 0;
};

/// Returns the operation's name in the API, such as assign_add or scatter_min.
std::string name_of(protocol::RowOp op, bool scatter);

/// Returns true if the calling thread is one of several replicas.
bool among_replicas() noexcept;

/// Throws Error(failed_precondition) if the calling thread is one of several replicas; the message says that
/// these cannot create `what` together.
void require_one_thread(const std::string& what);

/// Calls the `make` of replica 0 once and returns its result, or throws its exception, on every replica. All
/// replicas call this function. Throws what ReplicaRendezvous::run_collective throws. REQUIRES:
/// among_replicas().
std::shared_ptr<const void> make_once(const std::string& call,
                                      const std::function<std::shared_ptr<const void>()>& make);

/// Combines the changes of all replicas as the variable's aggregation determines, and calls the `apply` of
/// replica 0 once with the result. All replicas call this function. Dense changes are combined element by
/// element. The rows of scatter operations are concatenated in the order of the replicas; a mean divides
/// their values by the number of replicas. REQUIRES: among_replicas().
///
/// Throws Error: invalid_argument for the aggregation `none`, for a sum or mean that the dtype does not
/// support, and for dense changes of different rows; unimplemented for the sum or mean of a scatter operation
/// that is not arithmetic; and what ReplicaRendezvous::run_collective throws.
void merge_changes(const protocol::VariableDescriptor& variable, const RowChange& mine,
                   const std::function<void(const RowChange&)>& apply);

}  // namespace capstan::strategy

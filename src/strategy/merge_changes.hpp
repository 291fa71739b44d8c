// merge_changes.hpp -- merges the simultaneous changes of a worker's replicas to one variable into one
// change.
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

/// An operation on some rows: a scatter operation on the rows `ids`, else one on those from first_row on.
struct RowChange {
  protocol::RowOp op = protocol::RowOp::set;
  bool scatter = false;
  std::span<const std::int64_t> ids;
  std::uint64_t first_row = 0;
  const void* values = nullptr;
  std::size_t elements = 0;
};

/// Returns the name in the API: assign_add, scatter_min.
std::string name_of(protocol::RowOp op, bool scatter);

/// Returns true if the calling thread is one of several replicas.
bool among_replicas() noexcept;

/// Throws Error(failed_precondition) among replicas, which cannot create `what` together.
void require_one_thread(const std::string& what);

/// Called by all replicas at the same time: replica 0's `make` is called once, and every replica gets what it
/// returns or throws. Throws what ReplicaRendezvous::meet throws. REQUIRES: among_replicas().
std::shared_ptr<const void> make_once(const std::string& call,
                                      const std::function<std::shared_ptr<const void>()>& make);

/// Called by all replicas of a worker, each with its own change: `apply`, replica 0's, is called once with
/// what the variable's aggregation makes of them. Sums and means of dense changes are taken element by
/// element; those of scatter operations are all rows, one replica's after another's, which a mean divides by
/// the number of replicas. Throws Error: invalid_argument for an aggregation of none, for a sum or mean that
/// the dtype does not have, and for dense changes of different rows; unimplemented for the sum or mean of a
/// scatter operation that is no arithmetic; and what ReplicaRendezvous::meet throws. REQUIRES:
/// among_replicas().
void merge_changes(const protocol::VariableDescriptor& variable, const RowChange& mine,
                   const std::function<void(const RowChange&)>& apply);

}  // namespace capstan::strategy

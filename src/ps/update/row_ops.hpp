// row_ops.hpp -- assignment and scatter operations on rows, without an optimizer.
#pragma once

#include "protocol/push_format.hpp"
#include "ps/update/kernels.hpp"

namespace capstan::ps {

/// Applies `op` to the rows of an update in order, so a repeated row changes more than once. `gradient` is
/// the right-hand operand; slots are ignored. 16-bit floats are computed in float. REQUIRES: row numbers
/// within the shard; no integer division by zero. RowOp::gradient does nothing.
template <class T>
void apply(protocol::RowOp op, const Update<T>& update);

}  // namespace capstan::ps

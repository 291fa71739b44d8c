// row_ops.hpp -- assignments and scatter operations on rows, without an optimizer.
#pragma once

#include "protocol/push_format.hpp"
#include "ps/update/kernels.hpp"

namespace capstan::ps {

/// Changes the rows of an update one after the other, so that one which is named twice is changed twice;
/// `gradient` is the right-hand side, slots are not looked at. 16-bit numbers are worked on in float.
/// REQUIRES: `op` is none of the optimizer's; row numbers within the shard; no zero among integer divisors.
template <class T>
void apply(protocol::RowOp op, const Update<T>& update);

}  // namespace capstan::ps

// own_gpu.hpp -- the GPU that a worker computes with.
#pragma once

namespace capstan::train {

/// The number of this worker's, on a thread that runs a closure. Throws Error(failed_precondition) where
/// there is none, with the reason and what to do.
int own_gpu();

}  // namespace capstan::train

// assigned_gpu.hpp -- the GPU that a worker computes with.
#pragma once

namespace capstan::train {

/// Returns the device number of this worker's GPU. REQUIRES: a thread that runs a closure. Throws
/// Error(failed_precondition), with the reason and a remedy, if there is none.
int assigned_gpu();

}  // namespace capstan::train

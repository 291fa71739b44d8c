// spare.hpp -- the life of a spare: nothing to do until it has to be a ps.
#pragma once

#include <memory>

#include "cluster/runtime.hpp"

namespace capstan::ps {

/// Until the job is over, first as a spare and, once the coordinator has said so, as the ps in whose place it
/// is. Throws Error: unavailable when the coordinator dies, or when it could not take the place.
void run_spare(const std::shared_ptr<cluster::Runtime>& runtime);

}  // namespace capstan::ps

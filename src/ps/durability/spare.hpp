// spare.hpp -- main loop of a spare: waits until it has to replace a ps.
#pragma once

#include <memory>

#include "cluster/runtime.hpp"

namespace capstan::ps {

/// Runs this rank as a spare, or as a replica, and after a failover as the ps that it replaces. Returns when
/// the job ends or when this rank is fenced. Throws Error(unavailable) if the coordinator dies, or if the
/// failover fails.
void run_spare(const std::shared_ptr<cluster::Runtime>& runtime);

}  // namespace capstan::ps

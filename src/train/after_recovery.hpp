// after_recovery.hpp -- a training whose coordinator was killed and is back goes on from its last checkpoint.
#pragma once

#include "capstan/cluster.hpp"
#include "capstan/error.hpp"

namespace capstan {

/// The options of a training, with `resume` set where the coordinator was started again. Throws
/// Error(failed_precondition) where there are no checkpoints to go on from.
template <class Options>
Options after_recovery(const Cluster& cluster, Options options) {
  if (!cluster.recovered()) return options;
  if (options.checkpoint_dir.empty()) {
    throw Error(Code::failed_precondition,
                "the coordinator was killed and started again, but there are no checkpoints to go on from; "
                "--coordinator-wait needs --checkpoint-dir here");
  }
  options.resume = true;
  return options;
}

}  // namespace capstan

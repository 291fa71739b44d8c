// after_recovery.hpp -- resumes training from the last checkpoint after a restart of the coordinator.
#pragma once

#include "capstan/cluster.hpp"
#include "capstan/error.hpp"

namespace capstan {

/// Returns `options`, with `resume` set if this coordinator process is a restarted one. Throws
/// Error(failed_precondition) if it was restarted and no checkpoint directory is configured.
template <class Options>
Options after_recovery(const Cluster& cluster, Options options) {
  if (!cluster.recovered()) return options;
  if (options.checkpoint_dir.empty()) {
    throw Error(Code::failed_precondition,
                "cannot resume training after a restart of the coordinator: --checkpoint-dir is not set; "
                "set it when --coordinator-wait is used");
  }
  options.resume = true;
  return options;
}

}  // namespace capstan

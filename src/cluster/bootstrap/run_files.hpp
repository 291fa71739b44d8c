// run_files.hpp -- the log and the trace that each rank writes into the run directory.
#pragma once

#include <memory>

namespace capstan::cluster {

class Runtime;

/// With --run-dir this process appends its log to RUN_DIR/log/rank-00003.log from now on, and with --trace
/// its trace to RUN_DIR/trace/rank-00003.json. A restarted worker appends to the log of its previous process.
/// Ranks that are threads of one process share the log of the coordinator. Throws Error(invalid_argument) for
/// --trace without --run-dir.
std::shared_ptr<Runtime> with_run_files(std::shared_ptr<Runtime> runtime);

}  // namespace capstan::cluster

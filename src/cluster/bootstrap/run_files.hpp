// run_files.hpp -- what each rank writes into the run directory: its log, and its trace.
#pragma once

#include <memory>

namespace capstan::cluster {

class Runtime;

/// With --run-dir what this process logs is appended to RUN_DIR/log/rank-00003.log from now on, and with
/// --trace as well what it does to RUN_DIR/trace/rank-00003.json. In the log a worker that was started again
/// goes on in the file of the process before. Ranks that are threads of one process have one log, the
/// coordinator's. Throws Error(invalid_argument) for --trace without --run-dir.
std::shared_ptr<Runtime> with_run_files(std::shared_ptr<Runtime> runtime);

}  // namespace capstan::cluster

// rank_log.hpp -- the log of a rank in the run directory.
#pragma once

#include <memory>

namespace capstan::cluster {

class Runtime;

/// With --run-dir what this process logs is appended to RUN_DIR/log/rank-00003.log from now on. A worker that
/// was started again goes on in the file of the process before; ranks that are threads of one process have
/// one file, the coordinator's.
std::shared_ptr<Runtime> with_log_file(std::shared_ptr<Runtime> runtime);

}  // namespace capstan::cluster

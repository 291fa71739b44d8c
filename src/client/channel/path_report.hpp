// path_report.hpp -- logs the path to a ps, and rejects it if --require-transport does not accept it.
#pragma once

#include "client/channel/path.hpp"
#include "cluster/runtime.hpp"

namespace capstan::client {

/// Logs the path to the first ps of each kind (this host, another host) at level info, and others at level
/// debug. Warns if memory access to another host would be emulated. Throws Error(failed_precondition) if
/// the path does not satisfy --require-transport. Any thread.
void report_path(const cluster::Runtime& runtime, const cluster::Member& ps, Path path,
                 const transport::Peer& peer);

}  // namespace capstan::client

// path_report.hpp -- logs which path to a ps was chosen, and rejects one that is not good enough.
#pragma once

#include "client/channel/path.hpp"
#include "cluster/runtime.hpp"

namespace capstan::client {

/// Logs the path to the first ps of each kind (this host, another host) in one line, the others at debug
/// level; warns if memory access to another host would be emulated. Throws Error(failed_precondition) if the
/// path does not satisfy --require-transport. Any thread.
void report_path(const cluster::Runtime& runtime, const cluster::Member& ps, Path path,
                 const transport::Peer& peer);

}  // namespace capstan::client

// path_report.hpp -- which way to a ps was chosen, said once a kind, and refused where it is not good enough.
#pragma once

#include "client/channel/ps_link.hpp"

namespace capstan::client {

/// Logs the path of the first ps of each kind (this host, another host) in one line, the others at debug
/// level; warns where memory access to another host would be emulated. Throws Error(failed_precondition) when
/// the path does not satisfy --require-transport. Any thread.
void report_path(const cluster::Runtime& runtime, const cluster::Member& ps, Path path,
                 const transport::Peer& peer);

}  // namespace capstan::client

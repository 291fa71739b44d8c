// path_report.cpp -- one line and one warning for each kind of path.
#include "client/channel/path_report.hpp"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"

namespace capstan::client {
namespace {

/// Returns true for the first call with these arguments in this process.
bool first_of_its_kind(bool same_host, Path path) {
  static std::mutex mutex;
  static std::set<std::pair<bool, Path>> seen;
  const std::lock_guard lock(mutex);
  return seen.emplace(same_host, path).second;
}

void require(const std::string& required, const cluster::Member& ps, bool same_host, Path path,
             const transport::Peer& peer, const std::string& line) {
  if (good_enough(required, path, same_host, peer.has_hardware_rma())) return;
  throw Error(Code::failed_precondition,
              fmt::format("--require-transport={} refuses the way to {}: {}. {}", required, ps.name(), line,
                          required == "mapped"
                              ? "Its memory can be mapped only on the same host and in the same IPC namespace"
                              : "Use a UCX that has the cluster's adapters (ucx_info -d lists rc_ or dc_ "
                                "transports), and look at UCX_TLS and UCX_NET_DEVICES"));
}

}  // namespace

void report_path(const cluster::Runtime& runtime, const cluster::Member& ps, Path path,
                 const transport::Peer& peer) {
  const bool same_host = ps.host == runtime.self().host;
  const std::string line = path == Path::mapped || path == Path::in_process
                               ? std::string(to_string(path))
                               : fmt::format("{} over {}", to_string(path), peer.transports());
  log::debug("{}: {}", ps.name(), line);
  require(runtime.settings().text("require-transport"), ps, same_host, path, peer, line);
  if (path == Path::in_process || !first_of_its_kind(same_host, path)) return;
  log::info("ps on {} host: {}", same_host ? "this" : "another", line);
  // Every worker sees the same, so only one of them logs it.
  const cluster::Member& self = runtime.self();
  const bool logs = self.role == Role::coordinator || (self.role == Role::worker && self.index == 0);
  if (logs && path == Path::rma && !peer.has_hardware_rma()) {
    log::warn(
        "memory access to {} is emulated over {}: the ps's CPU does it, at a quarter of what active messages "
        "move. Leave --window at auto; a UCX with rc or dc transports (ucx_info -d) has the real thing",
        ps.name(), peer.transports());
  } else if (logs && path == Path::messages && !same_host) {
    log::warn(
        "no RDMA to {}: lookups, pulls and pushes are active messages over {} and take the ps's CPU. A UCX "
        "with rc or dc transports (ucx_info -d), or another UCX_TLS or UCX_NET_DEVICES, would spare it",
        ps.name(), peer.transports());
  } else if (logs && path == Path::messages) {
    log::warn(
        "the memory of {} is not mapped though it is on this host (--window, or another IPC namespace): "
        "active messages over {} move a tenth of what loads and stores do",
        ps.name(), peer.transports());
  }
}

}  // namespace capstan::client

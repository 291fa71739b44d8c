// path_report.cpp -- one log line and at most one warning for each kind of path.
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
  throw Error(
      Code::failed_precondition,
      fmt::format("--require-transport={}: found a path to {} by {}. {}", required, ps.name(), line,
                  required == "mapped"
                      ? "Memory can be mapped only on the same host and in the same IPC namespace"
                      : "Install a UCX that supports the cluster's adapters (ucx_info -d lists rc_ or "
                        "dc_ transports), and check UCX_TLS and UCX_NET_DEVICES"));
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
  // All workers have the same kind of paths, so only one of them warns.
  const cluster::Member& self = runtime.self();
  const bool logs = self.role == Role::coordinator || (self.role == Role::worker && self.index == 0);
  if (logs && path == Path::rma && !peer.has_hardware_rma()) {
    log::warn(
        "memory access to {} is emulated over {} by the ps's CPU, with a quarter of the throughput of active "
        "messages; set --window=auto, or install a UCX with rc or dc transports (ucx_info -d)",
        ps.name(), peer.transports());
  } else if (logs && path == Path::messages && !same_host) {
    log::warn(
        "no RDMA to {}: lookups, pulls and pushes use active messages over {} and the ps's CPU; install a "
        "UCX "
        "with rc or dc transports (ucx_info -d), or check UCX_TLS and UCX_NET_DEVICES",
        ps.name(), peer.transports());
  } else if (logs && path == Path::messages) {
    log::warn(
        "the memory of {} on this host is not mapped (--window, or another IPC namespace); active messages "
        "over "
        "{} have a tenth of the throughput of loads and stores",
        ps.name(), peer.transports());
  }
}

}  // namespace capstan::client

// transports.cpp -- ranks connect to every ps; a process without a launcher connects to a child.
#include "launch/transports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "capstan/capstan.hpp"
#include "cluster/bootstrap/join.hpp"
#include "cluster/bootstrap/mpi_bootstrap.hpp"
#include "cluster/runtime.hpp"
#include "launch/peer_process.hpp"
#include "launch/routes.hpp"
#include "strategy/context.hpp"
#include "transport/ucx/offer.hpp"

namespace capstan {
namespace {

using launch::HostOffer;
using launch::Route;

/// Findings of one rank.
struct Findings {
  HostOffer ucx;
  std::vector<Route> routes;
};

void print(const std::string& text) {
  std::cout << text << std::flush;
  if (!std::cout) throw Error(Code::resource_exhausted, "cannot write to standard output");
}

/// Connects to every ps. Runs on a thread that has a client: the coordinator's, or one that runs a closure.
Findings probe_routes() {
  client::Client& client = strategy::Context::current().client();
  const cluster::Runtime& runtime = client.runtime();
  const cluster::Member& self = runtime.self();
  Findings findings{{self.host, transport::ucx_offer()}, {}};
  for (int ps = 0; ps < runtime.count(Role::ps); ++ps) {
    const cluster::Member& member = runtime.member(Role::ps, ps);
    Route route{fmt::format("{} {}", to_string(self.role), self.index), self.host, fmt::format("ps {}", ps),
                member.host};
    try {
      client::PsConnection& connection = client.connections().at(ps);
      route.path = connection.path();
      route.transports = connection.peer().transports();
      route.hardware_rma = connection.peer().has_hardware_rma();
    } catch (const Error& error) {
      route.failure = error.what();
      route.code = static_cast<std::int32_t>(error.code());
    }
    findings.routes.push_back(std::move(route));
  }
  return findings;
}

/// Runs as a closure on a worker. The first element is the index of the worker.
std::pair<std::int32_t, Findings> probe_routes_on_worker() {
  return {current_worker_index(), probe_routes()};
}

/// Findings of all workers, by worker index. Throws Error(unavailable) if a worker does not answer.
std::vector<Findings> probe_workers(ParameterServerStrategy& strategy, int workers) {
  ClusterCoordinator coordinator(strategy);
  std::map<std::int32_t, Findings> by_worker;
  // The dispatcher prefers idle workers, so one round normally reaches all of them.
  for (int round = 0; round < 3 && static_cast<int>(by_worker.size()) < workers; ++round) {
    std::vector<RemoteValue<std::pair<std::int32_t, Findings>>> answers;
    for (int i = 0; i < workers; ++i) answers.push_back(coordinator.schedule<&probe_routes_on_worker>());
    coordinator.join();
    for (const auto& answer : answers) by_worker.insert(answer.fetch());
  }
  if (static_cast<int>(by_worker.size()) < workers) {
    throw Error(Code::unavailable, fmt::format("only {} of {} workers answered", by_worker.size(), workers));
  }
  std::vector<Findings> all;
  for (auto& [worker, findings] : by_worker) all.push_back(std::move(findings));
  return all;
}

/// Findings of the coordinator, then of the workers. Runs on the coordinator.
std::vector<Findings> probe_all_clients(const Cluster& cluster) {
  ParameterServerStrategy strategy(cluster);
  std::vector<Findings> all{probe_routes()};
  const auto failed = [](const Route& route) { return !route.failure.empty(); };
  try {
    for (Findings& findings : probe_workers(strategy, cluster.count(Role::worker)))
      all.push_back(std::move(findings));
  } catch (const Error&) {
    // A failed route also fails the closures. Its own error is more precise, so report that one.
    if (std::none_of(all[0].routes.begin(), all[0].routes.end(), failed)) throw;
  }
  return all;
}

int show_cluster(const Settings& settings) {
  // Shows all routes first; require_routes() rejects at the end.
  Settings lenient = settings;
  lenient.set_from_flag("require-transport", "any");
  lenient.set_from_flag("max-inflight-per-worker", "1");
  const Cluster cluster = cluster::join(lenient);
  if (cluster.role() != Role::coordinator) return Server(cluster).join();
  std::vector<HostOffer> offers;
  std::vector<Route> routes;
  for (const Findings& findings : probe_all_clients(cluster)) {
    offers.push_back(findings.ucx);
    routes.insert(routes.end(), findings.routes.begin(), findings.routes.end());
  }
  print(fmt::format("{}\n1 coordinator, {} ps, {} workers, --window {}\n{}", launch::offers_text(offers),
                    cluster.count(Role::ps), cluster.count(Role::worker), settings.text("window"),
                    launch::routes_text(routes, settings.text("window"))));
  launch::require_routes(routes, settings.text("require-transport"));
  return 0;
}

/// The route to a second process on this host, which stands in for a ps.
Route probe_local_route(launch::PeerProcess& peer_process, const std::string& window) {
  const std::string host = cluster::host_name();
  Route route{"this process", host, "a second process", host};
  try {
    const launch::PeerRoute found = peer_process.probe(client::window_path(window));
    route.path =
        found.mapped ? client::Path::mapped : client::path_without_mapping(window, found.hardware_rma);
    route.transports = found.transports;
    route.hardware_rma = found.hardware_rma;
  } catch (const Error& error) {
    route.failure = error.what();
    route.code = static_cast<std::int32_t>(error.code());
  }
  return route;
}

/// A prediction from the transports that UCX offers; nothing connects.
Route expected_remote_route(const transport::UcxOffer& offer, const std::string& window) {
  Route route{"", cluster::host_name(), "", ""};
  std::vector<std::string> hardware;
  std::vector<std::string> all;
  for (const std::string& name : offer.network) {
    if (transport::is_loopback(name)) continue;
    all.push_back(name);
    if (transport::has_hardware_rma(name)) hardware.push_back(name);
  }
  route.hardware_rma = !hardware.empty();
  route.path = client::path_without_mapping(window, route.hardware_rma);
  route.transports = fmt::format("{}", fmt::join(route.hardware_rma ? hardware : all, " or "));
  if (all.empty() || window == "mapped") route.code = static_cast<std::int32_t>(Code::unavailable);
  if (all.empty()) {
    route.failure = "UCX has no network device that reaches other hosts; check UCX_TLS and UCX_NET_DEVICES";
  } else if (window == "mapped") {
    route.failure = "--window mapped: memory of another host cannot be mapped; use --window auto";
  }
  return route;
}

int show_alone(const Settings& settings) {
  const std::string& window = settings.text("window");
  launch::PeerProcess peer_process;  // before UCX is used
  const transport::UcxOffer offer = transport::ucx_offer();
  const Route here = probe_local_route(peer_process, window);
  print(fmt::format(
      "{}\n--window {}, tested with a second process on this host\n{}"
      "\n--window {}, predicted, not tested: run under mpirun on two hosts to test\n{}",
      launch::offers_text({{cluster::host_name(), offer}}), window, launch::routes_text({here}, window),
      window, launch::routes_text({expected_remote_route(offer, window)}, window)));
  launch::require_routes({here}, settings.text("require-transport"));
  return 0;
}

}  // namespace

int run_show_transports(const Settings& settings) {
  return cluster::launched_ranks().value_or(1) == 1 ? show_alone(settings) : show_cluster(settings);
}

}  // namespace capstan

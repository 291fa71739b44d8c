// transports.cpp -- real ranks connect to real ps; one process connects to a second one.
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
#include "launch/neighbour.hpp"
#include "launch/ways.hpp"
#include "strategy/context.hpp"
#include "transport/ucx/offer.hpp"

namespace capstan {
namespace {

using launch::HostOffer;
using launch::Way;

/// What one rank found.
struct Findings {
  HostOffer ucx;
  std::vector<Way> ways;
};

void print(const std::string& text) {
  std::cout << text << std::flush;
  if (!std::cout) throw Error(Code::resource_exhausted, "standard output: cannot be written");
}

/// On the thread that has a client: the coordinator's, or that of a worker's closure.
Findings find_ways() {
  client::Client& client = strategy::Context::current().client();
  const cluster::Runtime& runtime = client.runtime();
  const cluster::Member& self = runtime.self();
  Findings findings{{self.host, transport::ucx_offer()}, {}};
  for (int ps = 0; ps < runtime.count(Role::ps); ++ps) {
    const cluster::Member& member = runtime.member(Role::ps, ps);
    Way way{fmt::format("{} {}", to_string(self.role), self.index), self.host, fmt::format("ps {}", ps),
            member.host};
    try {
      client::PsConnection& connection = client.connections().at(ps);
      way.path = connection.path();
      way.transports = connection.peer().transports();
      way.hardware_rma = connection.peer().has_hardware_rma();
    } catch (const Error& error) {
      way.failure = error.what();
      way.code = static_cast<std::int32_t>(error.code());
    }
    findings.ways.push_back(std::move(way));
  }
  return findings;
}

/// On a worker.
std::pair<std::int32_t, Findings> find_ways_of_worker() { return {current_worker_index(), find_ways()}; }

/// What every worker finds, in their order.
std::vector<Findings> ask_workers(ParameterServerStrategy& strategy, int workers) {
  ClusterCoordinator coordinator(strategy);
  std::map<std::int32_t, Findings> by_worker;
  // Functions go to workers in turn, so one round is enough unless a worker is lost.
  for (int round = 0; round < 3 && static_cast<int>(by_worker.size()) < workers; ++round) {
    std::vector<RemoteValue<std::pair<std::int32_t, Findings>>> answers;
    for (int i = 0; i < workers; ++i) answers.push_back(coordinator.schedule<&find_ways_of_worker>());
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

/// On the coordinator: what it and every worker find.
std::vector<Findings> ask_everybody(const Cluster& cluster) {
  ParameterServerStrategy strategy(cluster);
  std::vector<Findings> all{find_ways()};
  const auto failed = [](const Way& way) { return !way.failure.empty(); };
  try {
    for (Findings& findings : ask_workers(strategy, cluster.count(Role::worker)))
      all.push_back(std::move(findings));
  } catch (const Error&) {
    // Without a way to a ps there is none to the workers either: what was found says why.
    if (std::none_of(all[0].ways.begin(), all[0].ways.end(), failed)) throw;
  }
  return all;
}

int show_cluster(const Settings& settings) {
  // All ways are to be seen, also those that would be refused; that is said at the end.
  Settings lenient = settings;
  lenient.set_from_flag("require-transport", "any");
  lenient.set_from_flag("max-inflight-per-worker", "1");
  const Cluster cluster = cluster::join(lenient);
  if (cluster.role() != Role::coordinator) return Server(cluster).join();
  std::vector<HostOffer> offers;
  std::vector<Way> ways;
  for (const Findings& findings : ask_everybody(cluster)) {
    offers.push_back(findings.ucx);
    ways.insert(ways.end(), findings.ways.begin(), findings.ways.end());
  }
  print(fmt::format("{}\n1 coordinator, {} ps, {} workers, --window {}\n{}", launch::offers_text(offers),
                    cluster.count(Role::ps), cluster.count(Role::worker), settings.text("window"),
                    launch::ways_text(ways, settings.text("window"))));
  launch::require_ways(ways, settings.text("require-transport"));
  return 0;
}

/// Tried, with a second process in the ps's place.
Way way_on_this_host(launch::Neighbour& neighbour, const std::string& window) {
  const std::string host = cluster::host_name();
  Way way{"this process", host, "a second one", host};
  try {
    const launch::NeighbourWay found = neighbour.try_to_reach(client::window_path(window));
    way.path = found.mapped ? client::Path::mapped : client::path_without_mapping(window, found.hardware_rma);
    way.transports = found.transports;
    way.hardware_rma = found.hardware_rma;
  } catch (const Error& error) {
    way.failure = error.what();
    way.code = static_cast<std::int32_t>(error.code());
  }
  return way;
}

/// Expected: nobody is there to try it with.
Way way_to_another_host(const transport::UcxOffer& offer, const std::string& window) {
  Way way{"", cluster::host_name(), "", ""};
  std::vector<std::string> hardware;
  std::vector<std::string> all;
  for (const std::string& name : offer.network) {
    if (transport::is_loopback(name)) continue;
    all.push_back(name);
    if (transport::names_hardware_rma(name)) hardware.push_back(name);
  }
  way.hardware_rma = !hardware.empty();
  way.path = client::path_without_mapping(window, way.hardware_rma);
  way.transports = fmt::format("{}", fmt::join(way.hardware_rma ? hardware : all, " or "));
  if (all.empty() || window == "mapped") way.code = static_cast<std::int32_t>(Code::unavailable);
  if (all.empty()) {
    way.failure = "UCX has no network device that leaves this host; look at UCX_TLS and UCX_NET_DEVICES";
  } else if (window == "mapped") {
    way.failure = "--window mapped, and memory of another host cannot be mapped; use --window auto";
  }
  return way;
}

int show_alone(const Settings& settings) {
  const std::string& window = settings.text("window");
  launch::Neighbour neighbour;  // before UCX is used
  const transport::UcxOffer offer = transport::ucx_offer();
  const Way here = way_on_this_host(neighbour, window);
  print(fmt::format(
      "{}\n--window {}, tried with a second process on this host\n{}"
      "\n--window {}, to be expected, not tried: mpirun over two hosts connects them\n{}",
      launch::offers_text({{cluster::host_name(), offer}}), window, launch::ways_text({here}, window), window,
      launch::ways_text({way_to_another_host(offer, window)}, window)));
  launch::require_ways({here}, settings.text("require-transport"));
  return 0;
}

}  // namespace

int run_show_transports(const Settings& settings) {
  return cluster::launched_ranks().value_or(1) == 1 ? show_alone(settings) : show_cluster(settings);
}

}  // namespace capstan

// role_map.cpp -- the default map, its overrides, and the checks that ranks match.
#include "cluster/roles/role_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/assert.hpp"
#include "capstan/error.hpp"
#include "cluster/roles/role_file.hpp"

namespace capstan::cluster {
namespace {

using Hosts = std::span<const std::string>;

struct FreeRanks {
  std::string host;
  std::vector<int> ranks;  // ascending
};

/// Returns the ranks that are not in `taken`, by host. Hosts are in the order of their first ranks.
std::vector<FreeRanks> free_ranks(Hosts hosts, const std::set<int>& taken) {
  std::vector<FreeRanks> found;
  std::unordered_map<std::string_view, std::size_t> place_of;
  for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank) {
    const std::string& host = hosts[static_cast<std::size_t>(rank)];
    const auto [at, is_new] = place_of.try_emplace(host, found.size());
    if (is_new) found.push_back({host, {}});
    if (!taken.contains(rank)) found[at->second].ranks.push_back(rank);
  }
  return found;
}

/// Selects ranks for ps or spares round-robin over the hosts, the highest free rank of a host first. Hosts
/// with fewer of the ranks in `others` come first. REQUIRES: at least `wanted` ranks are free.
std::set<int> choose(Hosts hosts, int wanted, const std::set<int>& taken, const std::set<int>& others = {}) {
  std::unordered_map<std::string_view, int> others_on;
  for (const int rank : others) ++others_on[hosts[static_cast<std::size_t>(rank)]];
  const auto has = [&others_on](const FreeRanks& one) {
    const auto found = others_on.find(one.host);
    return found == others_on.end() ? 0 : found->second;
  };
  auto order = free_ranks(hosts, taken);
  std::stable_sort(order.begin(), order.end(),
                   [&has](const FreeRanks& a, const FreeRanks& b) { return has(a) < has(b); });
  std::set<int> chosen;
  while (static_cast<int>(chosen.size()) < wanted) {
    std::erase_if(order, [](const FreeRanks& one) { return one.ranks.empty(); });
    CAPSTAN_ASSERT(!order.empty());
    for (FreeRanks& one : order) {
      if (static_cast<int>(chosen.size()) == wanted) break;
      chosen.insert(one.ranks.back());
      one.ranks.pop_back();
    }
  }
  return chosen;
}

/// Selects the highest ranks of the last host, then of the one before.
std::set<int> choose_packed(Hosts hosts, int wanted, const std::set<int>& taken) {
  std::set<int> chosen;
  auto by_host = free_ranks(hosts, taken);
  for (auto host = by_host.rbegin(); host != by_host.rend(); ++host) {
    for (auto rank = host->ranks.rbegin(); rank != host->ranks.rend(); ++rank) {
      if (static_cast<int>(chosen.size()) < wanted) chosen.insert(*rank);
    }
  }
  return chosen;
}

/// Selects the `of_each` highest ranks on each host.
std::set<int> choose_per_node(Hosts hosts, int of_each, const std::set<int>& taken) {
  std::set<int> chosen;
  for (const auto& [host, ranks] : free_ranks(hosts, taken)) {
    if (static_cast<int>(ranks.size()) < of_each) {
      throw Error(Code::invalid_argument,
                  fmt::format("--role-map ps-per-node: {} has {} ranks left for {} ps; start more there, or "
                              "give a smaller --ps, which counts for each host",
                              host, ranks.size(), of_each));
    }
    chosen.insert(ranks.end() - of_each, ranks.end());
  }
  return chosen;
}

/// Selects all ranks of the last hosts on which no rank is taken, until there are `wanted` ranks. If `wanted`
/// is 0, selects the ranks of a quarter of the hosts.
std::set<int> choose_dedicated(Hosts hosts, int wanted, const std::set<int>& taken) {
  std::map<std::string, int> all;
  for (const std::string& host : hosts) ++all[host];
  std::set<int> chosen;
  std::string fitting;
  std::size_t hosts_left = std::max<std::size_t>(1, all.size() / 4);
  const auto by_host = free_ranks(hosts, taken);
  for (auto at = by_host.rbegin(); at != by_host.rend(); ++at) {
    const bool free = static_cast<int>(at->ranks.size()) == all[at->host];
    if (!free || chosen.size() + at->ranks.size() + taken.size() >= hosts.size()) continue;
    chosen.insert(at->ranks.begin(), at->ranks.end());
    fitting += (fitting.empty() ? "" : ", ") + std::to_string(chosen.size());
    if (static_cast<int>(chosen.size()) == wanted || (wanted == 0 && --hosts_left == 0)) return chosen;
  }
  throw Error(Code::invalid_argument,
              fitting.empty()
                  ? "--role-map dedicated: found no host for ps only, expected one without the coordinator "
                    "and another one for the workers; start ranks on more hosts"
                  : fmt::format("--role-map dedicated: ps take all ranks of a host, so expected --ps to be "
                                "one of {}, found {}",
                                fitting, wanted));
}

/// Selects up to `of_each` ranks on each host, leaving one for a worker; for 0, a quarter of the host's free
/// ranks, at least one.
std::set<int> choose_local(Hosts hosts, int of_each, const std::set<int>& taken) {
  std::set<int> chosen;
  for (const auto& [host, ranks] : free_ranks(hosts, taken)) {
    if (ranks.size() < 2) continue;  // the only rank becomes a worker; its ps are on other hosts
    const int quarter = std::max(1, static_cast<int>(ranks.size()) / 4);
    const int ps = std::min(of_each > 0 ? of_each : quarter, static_cast<int>(ranks.size()) - 1);
    chosen.insert(ranks.end() - ps, ranks.end());
  }
  if (chosen.empty()) {
    throw Error(Code::invalid_argument,
                "--role-map local: no host has ranks for a worker and a ps; start more ranks on each");
  }
  return chosen;
}

/// Selects the ranks of the ps where the placement determines their number.
std::optional<std::set<int>> place_ps(Hosts hosts, const RoleRequest& request, const std::set<int>& taken) {
  switch (request.placement) {
    case PsPlacement::per_node:
      return choose_per_node(hosts, std::max(1, request.ps), taken);
    case PsPlacement::dedicated:
      return choose_dedicated(hosts, request.ps, taken);
    case PsPlacement::local:
      return choose_local(hosts, request.ps, taken);
    case PsPlacement::spread:
    case PsPlacement::pack:
      break;
  }
  return std::nullopt;
}

/// Returns the rank of each ps's replica: the highest free rank of a host with the fewest replicas, if
/// possible not the host of the ps.
std::vector<int> choose_replicas(Hosts hosts, const std::set<int>& ps_ranks, const std::set<int>& taken) {
  auto by_host = free_ranks(hosts, taken);
  using Candidate =
      std::tuple<int, int, std::size_t>;  // replicas there, minus the rank, position in `by_host`
  std::set<Candidate> candidates;
  const auto enter = [&](int replicas, std::size_t place) {
    if (!by_host[place].ranks.empty()) candidates.insert({replicas, -by_host[place].ranks.back(), place});
  };
  for (std::size_t place = 0; place < by_host.size(); ++place) enter(0, place);
  std::vector<int> replicas;
  for (const int ps : ps_ranks) {
    CAPSTAN_ASSERT(!candidates.empty());
    const auto is_elsewhere = [&](const Candidate& one) {
      return by_host[std::get<2>(one)].host != hosts[static_cast<std::size_t>(ps)];
    };
    // Looks at two candidates at most, because only one of them is on the host of the ps.
    auto best = std::find_if(candidates.begin(), candidates.end(), is_elsewhere);
    if (best == candidates.end()) best = candidates.begin();
    const auto [has, minus_rank, place] = *best;
    candidates.erase(best);
    replicas.push_back(-minus_rank);
    by_host[place].ranks.pop_back();
    enter(has + 1, place);
  }
  return replicas;
}

}  // namespace

std::vector<RoleAssignment> map_roles(std::span<const std::string> hosts, const RoleRequest& request) {
  const int ranks = static_cast<int>(hosts.size());
  if (ranks == 2) {
    throw Error(Code::invalid_argument,
                "two ranks are too few: a cluster has a coordinator, a ps and a worker. Start three or more "
                "(mpirun -np 4), or one for all roles in one process");
  }
  const int others = 1 + (request.evaluator ? 1 : 0) + request.spares;
  const int of_each_ps = request.replicas ? 2 : 1;
  const int hosts_count = static_cast<int>(std::set<std::string>(hosts.begin(), hosts.end()).size());
  std::set<int> taken{0};
  if (request.evaluator) taken.insert(ranks - 1);
  const auto placed = ranks > 2 ? place_ps(hosts, request, taken) : std::nullopt;
  int ps = placed ? static_cast<int>(placed->size()) : request.ps;
  if (ps == 0 && request.workers > 0) {
    ps = (ranks - others - request.workers) / of_each_ps;
  } else if (ps == 0) {
    ps = std::max(1, std::min(hosts_count, ranks / 4));
  }
  const int workers = request.workers > 0 ? request.workers : ranks - others - of_each_ps * ps;
  if (ps < 1 || workers < 1 || others + of_each_ps * ps + workers != ranks) {
    const int wanted = others + of_each_ps * std::max(ps, 1) + std::max(workers, 1);
    throw Error(
        Code::invalid_argument,
        fmt::format(
            "{} ranks cannot hold 1 coordinator, {} ps{}, {} workers{}{}: that makes {}. Start {} ranks, or "
            "change --ps{} and --workers (each at least 1)",
            ranks, std::max(ps, 1), request.replicas ? " and as many replicas" : "", std::max(workers, 1),
            request.evaluator ? ", 1 evaluator" : "",
            request.spares > 0 ? fmt::format(", {} spares", request.spares) : "", wanted, wanted,
            request.spares > 0 ? ", --spares" : ""));
  }
  const std::set<int> ps_ranks = placed                                   ? *placed
                                 : request.placement == PsPlacement::pack ? choose_packed(hosts, ps, taken)
                                                                          : choose(hosts, ps, taken);
  taken.insert(ps_ranks.begin(), ps_ranks.end());
  const std::set<int> spare_ranks = choose(hosts, request.spares, taken, ps_ranks);
  std::map<int, int> replica_of;  // by rank: index of its ps
  if (request.replicas) {
    for (const int rank : choose_replicas(hosts, ps_ranks, taken)) {
      replica_of.emplace(rank, static_cast<int>(replica_of.size()));
    }
  }

  std::vector<RoleAssignment> assignments;
  int next_ps = 0;
  int next_spare = 0;
  int next_worker = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == 0) {
      assignments.push_back({Role::coordinator, 0});
    } else if (ps_ranks.contains(rank)) {
      assignments.push_back({Role::ps, next_ps++});
    } else if (const auto found = replica_of.find(rank); found != replica_of.end()) {
      assignments.push_back({Role::spare, found->second});
    } else if (spare_ranks.contains(rank)) {
      assignments.push_back({Role::spare, next_spare++});
    } else if (taken.contains(rank)) {
      assignments.push_back({Role::evaluator, 0});
    } else {
      assignments.push_back({Role::worker, next_worker++});
    }
  }
  return assignments;
}

std::vector<RoleAssignment> assignments_of(std::span<const Role> roles, std::string_view source) {
  const auto refused = [&](std::string_view what) {
    return Error(Code::invalid_argument, fmt::format("{}: {}", source, what));
  };
  std::map<Role, int> next;
  std::vector<RoleAssignment> assignments;
  for (const Role role : roles) assignments.push_back({role, next[role]++});
  if (next[Role::coordinator] == 0) throw refused("no rank is the coordinator");
  if (next[Role::coordinator] > 1)
    throw refused(fmt::format("found {} coordinators, expected one", next[Role::coordinator]));
  if (roles[0] != Role::coordinator) {
    throw refused(fmt::format("rank 0 is a {}, expected the coordinator; put the coordinator first",
                              to_string(roles[0])));
  }
  if (next[Role::ps] == 0) throw refused("no rank is a ps");
  if (next[Role::worker] == 0) throw refused("no rank is a worker");
  if (next[Role::evaluator] > 1)
    throw refused(fmt::format("found {} evaluators, expected at most one", next[Role::evaluator]));
  return assignments;
}

namespace {

/// Returns the roles that the ranks requested with --role; empty if none did. Throws Error(invalid_argument)
/// if only some ranks did.
std::vector<Role> own_roles(std::span<const Hello> hellos) {
  std::vector<Role> roles;
  for (std::size_t rank = 0; rank < hellos.size(); ++rank) {
    const Hello& hello = hellos[rank];
    if (hello.own_role.empty() != hellos[0].own_role.empty()) {
      const auto told = [](const Hello& one) {
        return one.own_role.empty() ? "no --role" : "--role " + one.own_role;
      };
      throw Error(Code::invalid_argument,
                  fmt::format("rank {} on {} was given {}, rank 0 {}: give a --role to every rank or to none",
                              rank, hello.host, told(hello), told(hellos[0])));
    }
    if (!hello.own_role.empty()) roles.push_back(*role_named(hello.own_role));
  }
  return roles;
}

/// Throws Error(invalid_argument) unless the other settings agree with these roles.
void require_asked_for(const std::vector<RoleAssignment>& assignments, const RoleRequest& request,
                       std::string_view source) {
  const auto require = [&](Role role, int asked, const char* flag) {
    const auto there =
        std::count_if(assignments.begin(), assignments.end(),
                      [role](const RoleAssignment& assigned) { return assigned.role == role; });
    if (asked != 0 && asked != there) {
      throw Error(Code::invalid_argument, fmt::format("{}: {} ranks are {}, but --{} is {}; omit --{}",
                                                      source, there, to_string(role), flag, asked, flag));
    }
  };
  require(Role::ps, request.ps, "ps");
  require(Role::worker, request.workers, "workers");
  require(Role::spare, request.spares, "spares");
  require(Role::evaluator, request.evaluator ? 1 : 0, "evaluator");
  const bool by_file = source == request.file;
  if (request.placement != PsPlacement::spread || (!request.file.empty() && !by_file)) {
    throw Error(Code::invalid_argument,
                fmt::format("{}: every rank has its role already; leave --role-map{} out", source,
                            by_file ? "" : " and --role-file"));
  }
  if (request.replicas) {
    throw Error(
        Code::invalid_argument,
        fmt::format("{}: --replicas-of-ps 2 selects the ranks of the replicas itself; omit one of the two",
                    source));
  }
}

std::vector<RoleAssignment> assignments_for(std::span<const Hello> hellos, Hosts hosts) {
  const RoleRequest& request = hellos[0].roles;
  std::vector<Role> roles = own_roles(hellos);
  if (roles.empty() && request.file.empty()) return map_roles(hosts, request);
  const std::string source = roles.empty() ? request.file : "--role or TF_CONFIG";
  if (roles.empty()) roles = read_role_file(request.file, hosts);
  auto assignments = assignments_of(roles, source);
  require_asked_for(assignments, request, source);
  return assignments;
}

}  // namespace

std::vector<Member> make_members(std::span<const Hello> hellos) {
  std::vector<std::string> hosts;
  for (std::size_t rank = 0; rank < hellos.size(); ++rank) {
    const Hello& hello = hellos[rank];
    if (hello.build != hellos[0].build) {
      throw Error(
          Code::failed_precondition,
          fmt::format(
              "rank {} on {} runs a different build than rank 0 on {}: start every rank from the same binary "
              "(is an old copy first in PATH there?)",
              rank, hello.host, hellos[0].host));
    }
    // `text` has placeholders for the rank, its host, its value and the value of rank 0.
    const auto require_same = [&](const auto& there, const auto& at_rank_0, Code code, const char* text) {
      if (there != at_rank_0)
        throw Error(code, fmt::format(fmt::runtime(text), rank, hello.host, there, at_rank_0));
    };
    require_same(hello.roles.text(), hellos[0].roles.text(), Code::failed_precondition,
                 "rank {} on {} was told {}, rank 0 was told {}: give every rank the same settings");
    require_same(
        hello.replicas, hellos[0].replicas, Code::invalid_argument,
        "Mismatched number of replicas per worker: rank {} on {} was told {}, rank 0 was told {}; give "
        "every rank the same --replicas");
    require_same(hello.restarts, hellos[0].restarts, Code::failed_precondition,
                 "rank {} on {} restarts a worker up to {} times, rank 0 up to {} times: give every rank the "
                 "same --max-restarts");
    require_same(
        hello.late, hellos[0].late, Code::failed_precondition,
        "rank {} on {} has room for {} late workers, rank 0 for {}: give every rank the same --run-dir and "
        "--late-workers");
    require_same(
        hello.coordinator_wait, hellos[0].coordinator_wait, Code::failed_precondition,
        "rank {} on {} waits {} ms for a coordinator that was killed, rank 0 {} ms: give every rank the "
        "same --coordinator-wait");
    hosts.push_back(hello.host);
  }
  const std::vector<RoleAssignment> assignments = assignments_for(hellos, hosts);
  std::vector<Member> members;
  for (std::size_t rank = 0; rank < hellos.size(); ++rank) {
    const Hello& hello = hellos[rank];
    members.push_back({static_cast<int>(rank), assignments[rank].role, assignments[rank].index, hello.host,
                       hello.pid, hello.control_address, hello.data_address, hello.resources});
  }
  return members;
}

Table make_table(std::span<const Hello> hellos) {
  Table table;
  table.members = make_members(hellos);
  table.restarts = hellos[0].restarts;
  table.late = hellos[0].late;
  table.coordinator_wait = hellos[0].coordinator_wait;
  table.secret = transport::JobSecret::random();
  return table;
}

}  // namespace capstan::cluster

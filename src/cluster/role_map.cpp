// role_map.cpp -- the default map, its overrides, and the checks of what ranks say of themselves.
#include "cluster/role_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

#include "base/settings.hpp"
#include "capstan/error.hpp"

namespace capstan::cluster {
namespace {

Error bad_roles(const std::string& text, const std::string& why) {
  return Error(Code::invalid_argument,
               fmt::format("roles \"{}\": {}; expected ROLE:COUNT,... with roles coordinator, ps, "
                           "worker, evaluator, spare, such as \"coordinator:1,ps:4,worker:*\"",
                           text, why));
}

RoleRequest parse_roles(const std::string& text) {
  RoleRequest request;
  std::set<std::string> seen;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t colon = item.find(':');
    if (colon == std::string::npos) throw bad_roles(text, "\"" + item + "\" has no count");
    const std::string role = item.substr(0, colon);
    const std::string number = item.substr(colon + 1);
    int count = 0;
    if (number == "*") {
      if (role != "worker") throw bad_roles(text, "only worker may be *");
    } else {
      const auto [end_of_number, error] =
          std::from_chars(number.data(), number.data() + number.size(), count);
      if (error != std::errc() || end_of_number != number.data() + number.size() || count < 0) {
        throw bad_roles(text, "\"" + number + "\" is no count");
      }
    }
    if (!seen.insert(role == "chief" ? "coordinator" : role).second) {
      throw bad_roles(text, "\"" + role + "\" stands twice");
    }
    if (role == "coordinator" || role == "chief") {
      if (count != 1) throw bad_roles(text, "there is one coordinator");
    } else if (role == "ps") {
      if (count < 1) throw bad_roles(text, "there must be at least one ps");
      request.ps = count;
    } else if (role == "worker") {
      if (number != "*" && count < 1) throw bad_roles(text, "there must be at least one worker");
      request.workers = count;
    } else if (role == "evaluator") {
      if (count > 1) throw bad_roles(text, "there is at most one evaluator");
      request.evaluator = count == 1;
    } else if (role == "spare") {
      request.spares = count;
    } else {
      throw bad_roles(text, "\"" + role + "\" is no role");
    }
  }
  return request;
}

/// Ranks that become ps, or spares: one from each host in turn, on each host the highest free rank first.
/// Hosts that have fewer of the ranks `others` have their turn first.
std::set<int> choose(std::span<const std::string> hosts, int wanted, const std::set<int>& taken,
                     const std::set<int>& others = {}) {
  std::vector<std::string> order;
  for (const std::string& host : hosts) {
    if (std::find(order.begin(), order.end(), host) == order.end()) order.push_back(host);
  }
  std::map<std::string, int> has;
  for (const int rank : others) ++has[hosts[static_cast<std::size_t>(rank)]];
  std::stable_sort(order.begin(), order.end(),
                   [&](const std::string& a, const std::string& b) { return has[a] < has[b]; });
  std::set<int> chosen;
  while (static_cast<int>(chosen.size()) < wanted) {
    for (const std::string& host : order) {
      for (int rank = static_cast<int>(hosts.size()) - 1; rank >= 0; --rank) {
        const bool is_free = !taken.contains(rank) && !chosen.contains(rank);
        if (hosts[static_cast<std::size_t>(rank)] == host && is_free) {
          chosen.insert(rank);
          break;
        }
      }
      if (static_cast<int>(chosen.size()) == wanted) break;
    }
  }
  return chosen;
}

/// The rank of the replica of each ps, on another host than the ps where there is one.
std::vector<int> choose_replicas(std::span<const std::string> hosts, const std::set<int>& ps_ranks,
                                 std::set<int> taken) {
  std::map<std::string, int> has;
  std::vector<int> replicas;
  for (const int ps : ps_ranks) {
    int best = -1;
    const auto worse = [&](int rank) {
      const std::string& host = hosts[static_cast<std::size_t>(rank)];
      return std::tuple(host == hosts[static_cast<std::size_t>(ps)], has[host], -rank);
    };
    for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank) {
      if (!taken.contains(rank) && (best < 0 || worse(rank) < worse(best))) best = rank;
    }
    taken.insert(best);
    ++has[hosts[static_cast<std::size_t>(best)]];
    replicas.push_back(best);
  }
  return replicas;
}

}  // namespace

RoleRequest RoleRequest::from(const Settings& settings) {
  RoleRequest request;
  if (!settings.text("roles").empty()) {
    request = parse_roles(settings.text("roles"));
  } else {
    request.ps = static_cast<int>(settings.integer("ps"));
    request.workers = static_cast<int>(settings.integer("workers"));
    request.evaluator = settings.flag("evaluator");
    request.spares = static_cast<int>(settings.integer("spares"));
  }
  request.replicas = settings.integer("replicas-of-ps") > 1;
  if (request.replicas && request.spares > 0) {
    throw Error(
        Code::invalid_argument,
        "--spares does not go with --replicas-of-ps 2, which makes each ps a spare of its own: give one "
        "of the two");
  }
  return request;
}

std::string RoleRequest::text() const {
  return fmt::format("ps={} workers={} evaluator={}{}{}", ps, workers, evaluator ? 1 : 0,
                     spares > 0 ? fmt::format(" spares={}", spares) : "",
                     replicas ? " replicas-of-ps=2" : "");
}

std::vector<Place> map_roles(std::span<const std::string> hosts, const RoleRequest& request) {
  const int ranks = static_cast<int>(hosts.size());
  if (ranks == 2) {
    throw Error(Code::invalid_argument,
                "two ranks are too few: a cluster has a coordinator, a ps and a worker. Start three or more "
                "(mpirun -np 4), or one for all roles in one process");
  }
  const int others = 1 + (request.evaluator ? 1 : 0) + request.spares;
  const int of_each_ps = request.replicas ? 2 : 1;
  const int hosts_count = static_cast<int>(std::set<std::string>(hosts.begin(), hosts.end()).size());
  int ps = request.ps;
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
  std::set<int> taken{0};
  if (request.evaluator) taken.insert(ranks - 1);
  const std::set<int> ps_ranks = choose(hosts, ps, taken);
  taken.insert(ps_ranks.begin(), ps_ranks.end());
  const std::set<int> spare_ranks = choose(hosts, request.spares, taken, ps_ranks);
  const std::vector<int> replica_ranks =
      request.replicas ? choose_replicas(hosts, ps_ranks, taken) : std::vector<int>{};

  std::vector<Place> places;
  int next_ps = 0;
  int next_spare = 0;
  int next_worker = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == 0) {
      places.push_back({Role::coordinator, 0});
    } else if (ps_ranks.contains(rank)) {
      places.push_back({Role::ps, next_ps++});
    } else if (const auto found = std::find(replica_ranks.begin(), replica_ranks.end(), rank);
               found != replica_ranks.end()) {
      places.push_back({Role::spare, static_cast<int>(found - replica_ranks.begin())});
    } else if (spare_ranks.contains(rank)) {
      places.push_back({Role::spare, next_spare++});
    } else if (taken.contains(rank)) {
      places.push_back({Role::evaluator, 0});
    } else {
      places.push_back({Role::worker, next_worker++});
    }
  }
  return places;
}

std::vector<Member> make_members(std::span<const Hello> hellos) {
  std::vector<std::string> hosts;
  for (std::size_t rank = 0; rank < hellos.size(); ++rank) {
    const Hello& hello = hellos[rank];
    if (hello.build != hellos[0].build) {
      throw Error(
          Code::failed_precondition,
          fmt::format(
              "rank {} on {} runs another build than rank 0 on {}: start every rank from the same binary "
              "(is an old copy first in PATH there?)",
              rank, hello.host, hellos[0].host));
    }
    // `text` names rank, host, what that rank was told and what rank 0 was.
    const auto require_same = [&](const auto& there, const auto& at_rank_0, Code code, const char* text) {
      if (there != at_rank_0)
        throw Error(code, fmt::format(fmt::runtime(text), rank, hello.host, there, at_rank_0));
    };
    require_same(hello.roles, hellos[0].roles, Code::failed_precondition,
                 "rank {} on {} was told {}, rank 0 was told {}: give every rank the same settings");
    require_same(
        hello.replicas, hellos[0].replicas, Code::invalid_argument,
        "Mismatched number of replicas per worker: rank {} on {} was told {}, rank 0 was told {}; give "
        "every rank the same --replicas");
    require_same(hello.restarts, hellos[0].restarts, Code::failed_precondition,
                 "rank {} on {} starts a worker again {} times, rank 0 {} times: give every rank the same "
                 "--max-restarts");
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
  RoleRequest request;
  int evaluator = 0;
  std::sscanf(hellos[0].roles.c_str(), "ps=%d workers=%d evaluator=%d spares=%d", &request.ps,
              &request.workers, &evaluator, &request.spares);
  request.evaluator = evaluator != 0;
  request.replicas = hellos[0].roles.find("replicas-of-ps=2") != std::string::npos;

  const std::vector<Place> places = map_roles(hosts, request);
  std::vector<Member> members;
  for (std::size_t rank = 0; rank < hellos.size(); ++rank) {
    const Hello& hello = hellos[rank];
    members.push_back({static_cast<int>(rank), places[rank].role, places[rank].index, hello.host, hello.pid,
                       hello.control_address, hello.data_address});
  }
  return members;
}

}  // namespace capstan::cluster

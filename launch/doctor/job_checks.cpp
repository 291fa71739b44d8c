// job_checks.cpp -- collects and compares properties of the ranks.
#include "launch/doctor/job_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "base/topology.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/bootstrap/mpi_bootstrap.hpp"
#include "cluster/bootstrap/socket.hpp"
#include "cluster/runtime.hpp"
#include "launch/doctor/adapters.hpp"
#include "launch/doctor/checkpoint_directory.hpp"
#include "launch/doctor/host_names.hpp"
#include "launch/doctor/pair_plan.hpp"
#include "launch/doctor/time_limit.hpp"

namespace capstan::launch::doctor {
namespace {

/// Seconds. With a larger skew, logs and file times of two hosts cannot be ordered.
constexpr double kMaxSkew = 0.5;
constexpr int kClockRounds = 5;
constexpr std::chrono::seconds kDirectoryTimeout{10};
constexpr std::size_t kMaxNamedRanks = 8;

/// Formats "0, 1, 2, ...", with at most kMaxNamedRanks numbers.
std::string list(const std::vector<int>& numbers) {
  const auto end = numbers.begin() + static_cast<std::ptrdiff_t>(std::min(numbers.size(), kMaxNamedRanks));
  return fmt::format("{}{}", fmt::join(numbers.begin(), end, ", "), end != numbers.end() ? ", ..." : "");
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

RankFacts own_facts() {
  const cluster::Hello hello = cluster::make_hello();
  RankFacts facts{hello.host, hello.pid, hello.build};
  struct stat ipc {};
  if (stat("/proc/self/ns/ipc", &ipc) == 0) facts.ipc_namespace = ipc.st_ino;
  facts.cores = topology::allowed_cores();
  facts.address = cluster::address_of_this_host();
  const auto ports = read_adapters("/sys");
  facts.has_adapter =
      std::any_of(ports.begin(), ports.end(), [](const AdapterPort& port) { return port.active(); });
  return facts;
}

std::set<std::string> hosts_with_adapter(const std::vector<RankFacts>& facts) {
  std::set<std::string> hosts;
  for (const RankFacts& rank : facts) {
    if (rank.has_adapter) hosts.insert(rank.host);
  }
  return hosts;
}

std::vector<HostRanks> group_by_host(const std::vector<RankFacts>& facts) {
  std::vector<HostRanks> hosts;
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    auto host = std::find_if(hosts.begin(), hosts.end(),
                             [&](const HostRanks& one) { return one.host == facts[rank].host; });
    if (host == hosts.end()) host = hosts.insert(hosts.end(), HostRanks{facts[rank].host, {}});
    host->ranks.push_back(static_cast<int>(rank));
  }
  return hosts;
}

Finding judge_binary(const std::vector<RankFacts>& facts) {
  if (facts.size() < 2) return skip("one rank");
  std::vector<int> others;
  for (std::size_t rank = 1; rank < facts.size(); ++rank) {
    if (facts[rank].binary != facts[0].binary) others.push_back(static_cast<int>(rank));
  }
  if (others.empty()) return pass(fmt::format("{} ranks run the same program", facts.size()));
  const std::string& host = facts[static_cast<std::size_t>(others.front())].host;
  return fail(fmt::format("rank {} (first on {}) {} a different build than rank 0 on {}", list(others), host,
                          others.size() == 1 ? "runs" : "run", facts[0].host),
              "copy the program to every host, or install it on a shared file system");
}

Finding judge_ipc(const std::vector<RankFacts>& facts) {
  if (facts.size() < 2) return skip("one rank");
  bool several_on_a_host = false;
  for (const HostRanks& host : group_by_host(facts)) {
    std::set<std::uint64_t> namespaces;
    for (const int rank : host.ranks) namespaces.insert(facts[static_cast<std::size_t>(rank)].ipc_namespace);
    several_on_a_host = several_on_a_host || host.ranks.size() > 1;
    if (namespaces.size() < 2) continue;
    return warn(fmt::format("{} ranks on {} are in {} IPC namespaces, so they cannot map each other's memory",
                            host.ranks.size(), host.host, namespaces.size()),
                "run all ranks of a host in one container (apptainer --sharens, docker --ipc host)");
  }
  if (!several_on_a_host) return skip("one rank on each host");
  return pass("ranks of one host share one IPC namespace");
}

std::vector<Finding> judge_binding(const std::vector<RankFacts>& facts) {
  constexpr const char* kFix =
      "use mpirun --bind-to none or --map-by ppr:N:node:PE=K --bind-to core; srun --cpus-per-task=K "
      "--cpu-bind=cores";
  std::vector<Finding> findings;
  for (const HostRanks& host : group_by_host(facts)) {
    std::map<int, int> users;  // by core
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    for (const int rank : host.ranks) {
      const auto& cores = facts[static_cast<std::size_t>(rank)].cores;
      fewest = std::min(fewest, cores.size());
      for (const int core : cores) ++users[core];
    }
    const std::size_t ranks = host.ranks.size();
    if (fewest == 0) {
      findings.push_back(skip("hwloc does not report the allowed cores"));
      continue;
    }
    const std::string observed =
        fmt::format("{} {} {} {}; each may use {} or more", ranks, ranks == 1 ? "rank shares" : "ranks share",
                    users.size(), users.size() == 1 ? "core" : "cores", fewest);
    if (ranks > users.size()) {
      findings.push_back(
          warn(observed + ": oversubscribed, so the scheduler's time slices determine latencies",
               "start at most one rank per core"));
      continue;
    }
    const auto shared =
        std::find_if(users.begin(), users.end(), [](const auto& user) { return user.second > 1; });
    const bool bound = fewest < users.size();
    if (bound && shared != users.end()) {
      findings.push_back(warn(
          fmt::format("{}; {} ranks are bound to core {}", observed, shared->second, shared->first), kFix));
    } else if (fewest == 1) {
      findings.push_back(
          warn(observed + ": a rank needs two cores, since one thread computes while another serves requests",
               kFix));
    } else {
      findings.push_back(pass(observed));
    }
  }
  return findings;
}

Finding judge_clocks(const std::vector<ClockOffset>& offsets) {
  if (offsets.empty()) return skip("one host");
  const auto worst = std::max_element(
      offsets.begin(), offsets.end(),
      [](const ClockOffset& a, const ClockOffset& b) { return std::abs(a.seconds) < std::abs(b.seconds); });
  const std::string observed = fmt::format(
      "largest difference of {} hosts: {} is {:.3f} s {} rank 0 (+/- {:.3f} s)", offsets.size() + 1,
      worst->host, std::abs(worst->seconds), worst->seconds < 0 ? "behind" : "ahead of", worst->uncertainty);
  if (std::abs(worst->seconds) - worst->uncertainty <= kMaxSkew) return pass(observed);
  return warn(
      observed,
      "synchronize the clocks (chronyc tracking): times in logs and traces of two hosts do not match");
}

std::vector<ClockOffset> measure_clocks(RankGroup& group, const std::vector<RankFacts>& facts) {
  const std::vector<HostRanks> hosts = group_by_host(facts);
  if (hosts.size() < 2) return {};
  std::vector<ClockOffset> best(hosts.size() - 1);
  for (int round = 0; round < kClockRounds; ++round) {
    // No rank leaves the barrier before rank 0 enters, so the other times lie between `before` and `after`.
    const double before = now();
    group.barrier("the barrier before comparing clocks");
    const double mine = now();
    const auto all = group.all_gather(to_bytes(mine), "the times of all ranks");
    const double after = now();
    for (std::size_t host = 1; host < hosts.size(); ++host) {
      const auto theirs = from_bytes<double>(all[static_cast<std::size_t>(hosts[host].ranks.front())]);
      const double uncertainty = (after - before) / 2;
      ClockOffset& known = best[host - 1];
      if (!known.host.empty() && known.uncertainty <= uncertainty) continue;
      known = {hosts[host].host, theirs - (before + after) / 2, uncertainty};
    }
  }
  if (group.rank() != 0) best.clear();
  return best;
}

Finding check_ports(RankGroup& group, const std::vector<RankFacts>& facts) {
  const std::vector<HostRanks> hosts = group_by_host(facts);
  std::vector<ConnectionAttempt> mine;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    if (hosts[host].ranks.front() != group.rank()) continue;
    for (const int other : ring_neighbors(static_cast<int>(host), static_cast<int>(hosts.size()))) {
      const RankFacts& there =
          facts[static_cast<std::size_t>(hosts[static_cast<std::size_t>(other)].ranks.front())];
      mine.push_back(attempt_connection(hosts[host].host, {there.host, there.address, there.port}));
    }
  }
  std::vector<ConnectionAttempt> all;
  for (const Blob& blob : group.all_gather(to_bytes(mine), "the ports of all hosts")) {
    for (ConnectionAttempt& one : from_bytes<std::vector<ConnectionAttempt>>(blob))
      all.push_back(std::move(one));
  }
  return judge_connections(all);
}

Finding check_shared_directory(RankGroup& group, const std::vector<RankFacts>& facts,
                               const std::string& directory) {
  const std::vector<HostRanks> hosts = group_by_host(facts);
  std::shared_ptr<MarkerFile> marker;
  std::string failure;
  if (group.rank() == 0) {
    try {
      marker = run_with_time_limit<std::shared_ptr<MarkerFile>>(kDirectoryTimeout, [directory] {
                 return std::make_shared<MarkerFile>(directory);
               }).value_or(nullptr);
      if (marker == nullptr) failure = "the file system does not answer";
    } catch (const Error& error) {
      failure = error.what();
    }
  }
  const Blob own_path = to_bytes(marker != nullptr ? marker->path() : std::string());
  const auto path =
      from_bytes<std::string>(group.all_gather(own_path, "a file in the checkpoint directory").front());
  bool visible = true;
  for (const HostRanks& host : hosts) {
    if (host.ranks.front() != group.rank() || path.empty()) continue;
    visible = run_with_time_limit<bool>(kDirectoryTimeout, [path] {
                return MarkerFile::is_visible(path);
              }).value_or(false);
  }
  std::vector<std::string> blind;
  const auto all = group.all_gather(to_bytes(visible), "all hosts to check the checkpoint directory");
  for (const HostRanks& host : hosts) {
    if (!from_bytes<bool>(all[static_cast<std::size_t>(host.ranks.front())])) blind.push_back(host.host);
  }
  return judge_shared_directory(directory, static_cast<int>(hosts.size()), blind, failure);
}

}  // namespace capstan::launch::doctor

// job_checks.hpp -- checks that compare the ranks of the job.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/rank_group.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

/// Properties of one rank. Serialized and sent to all ranks.
struct RankFacts {
  std::string host;
  std::int64_t pid = 0;
  std::uint64_t binary = 0;         ///< hash of the program
  std::uint64_t ipc_namespace = 0;  ///< inode of the namespace; 0: unknown
  std::vector<int> cores = {};      ///< cores in its affinity mask; empty: unknown
  std::string address = {};         ///< IPv4 address of the first interface of its host
  int port = 0;                     ///< TCP port of its listener
  bool has_adapter = false;         ///< its host has an active InfiniBand or RoCE port
};

/// Properties of this process; the caller sets `port`.
RankFacts own_facts();

/// A host and its ranks.
struct HostRanks {
  std::string host;
  std::vector<int> ranks;
};
/// Hosts with an active InfiniBand or RoCE port.
std::set<std::string> hosts_with_adapter(const std::vector<RankFacts>& facts);

/// Hosts in the order of their first ranks.
std::vector<HostRanks> group_by_host(const std::vector<RankFacts>& facts);

Finding judge_binary(const std::vector<RankFacts>& facts);
Finding judge_ipc(const std::vector<RankFacts>& facts);
/// One finding per host, in the order of group_by_host().
std::vector<Finding> judge_binding(const std::vector<RankFacts>& facts);

/// Difference between the clock of a host and the clock of rank 0, in seconds; positive if the host is ahead.
struct ClockOffset {
  std::string host;
  double seconds = 0;
  double uncertainty = 0;  ///< half of the round-trip time
};
Finding judge_clocks(const std::vector<ClockOffset>& offsets);

/// Collective. Returns an empty list on ranks other than 0, and if there is only one host.
std::vector<ClockOffset> measure_clocks(RankGroup& group, const std::vector<RankFacts>& facts);

/// Collective: the first rank of each host connects to other hosts. Every rank gets the finding of all hosts.
Finding check_ports(RankGroup& group, const std::vector<RankFacts>& facts);

/// Collective: rank 0 creates a file in the checkpoint directory, and the first rank of every other host
/// looks for it. A host whose file system hangs for 10 s counts as not seeing it.
Finding check_shared_directory(RankGroup& group, const std::vector<RankFacts>& facts,
                               const std::string& directory);

}  // namespace capstan::launch::doctor

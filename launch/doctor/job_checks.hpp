// job_checks.hpp -- what is judged from what all ranks say of themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/gathering.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

/// A rank of itself. Travels to all.
struct RankFacts {
  std::string host;
  std::int64_t pid = 0;
  std::uint64_t binary = 0;         ///< hash of the program
  std::uint64_t ipc_namespace = 0;  ///< its inode; 0: unknown
  std::vector<int> cores = {};      ///< that it may use; empty: unknown
  std::string address = {};         ///< of its host's first interface
  int port = 0;                     ///< at which it listens
};

/// Of this process; `port` is left to the caller.
RankFacts own_facts();

/// Hosts in the order of their first ranks, and each one's ranks.
struct HostRanks {
  std::string host;
  std::vector<int> ranks;
};
std::vector<HostRanks> by_host(const std::vector<RankFacts>& facts);

Finding judge_binary(const std::vector<RankFacts>& facts);
Finding judge_ipc(const std::vector<RankFacts>& facts);
/// One finding a host, in the order of by_host.
std::vector<Finding> judge_binding(const std::vector<RankFacts>& facts);

/// How far another host's clock is from rank 0's.
struct ClockOffset {
  std::string host;
  double seconds = 0;
  double uncertainty = 0;  ///< half of what the question took
};
Finding judge_clocks(const std::vector<ClockOffset>& offsets);

/// Collective. Empty but on rank 0, and where there is one host.
std::vector<ClockOffset> measure_clocks(Gathering& gathering, const std::vector<RankFacts>& facts);

/// Collective: the first rank of each host knocks at others. Of all hosts on rank 0.
Finding check_ports(Gathering& gathering, const std::vector<RankFacts>& facts);

/// Collective: rank 0 makes a file in the checkpoint folder, and the first rank of every other host looks for
/// it. A file system that does not answer counts as one that does not show it.
Finding check_shared_folder(Gathering& gathering, const std::vector<RankFacts>& facts,
                            const std::string& folder);

}  // namespace capstan::launch::doctor

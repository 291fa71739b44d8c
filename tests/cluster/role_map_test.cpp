// role_map_test.cpp -- roles of ranks, compared with tables computed by hand.
#include "cluster/roles/role_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "capstan/error.hpp"

namespace capstan::cluster {
namespace {

/// Returns the host of each rank, which is one letter: "aab" is two ranks on host a and one on b.
std::vector<std::string> hosts_of(const std::string& letters) {
  std::vector<std::string> hosts;
  for (const char letter : letters) hosts.emplace_back(1, letter);
  return hosts;
}

/// Returns the role of each rank as one letter. Checks that indices count up with the ranks.
std::string roles_of(const std::vector<RoleAssignment>& assignments) {
  std::string letters;
  std::array<int, 5> next{};
  for (const RoleAssignment& assigned : assignments) {
    const auto role = static_cast<std::size_t>(assigned.role);
    letters += "CPWES"[role];
    EXPECT_EQ(assigned.index, next[role]++) << letters;
  }
  return letters;
}

std::string map(const std::string& hosts, const RoleRequest& request = {}) {
  return roles_of(map_roles(hosts_of(hosts), request));
}

void expect_refused(const std::string& hosts, const RoleRequest& request, const std::string& text) {
  try {
    const auto assignments = map_roles(hosts_of(hosts), request);
    ADD_FAILURE() << hosts << " became " << roles_of(assignments);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_EQ(std::string(error.what()), text);
  }
}

TEST(RoleMap, DefaultsToOnePsPerHostAndAtMostAQuarterOfTheRanks) {
  EXPECT_EQ(map("aaa"), "CWP");
  EXPECT_EQ(map("aaaa"), "CWWP");
  EXPECT_EQ(map("aaaaaaaaaaaa"), "CWWWWWWWWWWP");
  EXPECT_EQ(map("aabb"), "CPWW");
  EXPECT_EQ(map("aaabbb"), "CWPWWW");
  EXPECT_EQ(map("aaaabbbb"), "CWWPWWWP");
  EXPECT_EQ(map("aaabbbcccddd"), "CWPWWPWWPWWW");
  EXPECT_EQ(map("aaabbb"), "CWPWWW");
  EXPECT_EQ(map("aaaaaabbbcccddd"), "CWWWWPWWPWWPWWW");
}

TEST(RoleMap, SpreadsPsIfRanksAreCyclic) {
  EXPECT_EQ(map("abababab"), "CWWWWWPP");
  EXPECT_EQ(map("abcdabcdabcd"), "CWWWWWWWPPPW");
}

TEST(RoleMap, HostWithOnlyTheCoordinatorHasNoPs) {
  EXPECT_EQ(map("abc"), "CPW");
  EXPECT_EQ(map("abbb", {.ps = 2}), "CWPP");
}

TEST(RoleMap, SpreadsARequestedNumberOfPs) {
  EXPECT_EQ(map("aaaa", {.ps = 2}), "CWPP");
  EXPECT_EQ(map("aaabbb", {.ps = 2}), "CWPWWP");
  EXPECT_EQ(map("aaabbb", {.ps = 3}), "CPPWWP");
  EXPECT_EQ(map("aaabbb", {.ps = 4}), "CPPWPP");
  EXPECT_EQ(map("aaaaaabbb", {.ps = 5}), "CWWPPPWPP");
}

TEST(RoleMap, PacksPsOnTheLastHosts) {
  EXPECT_EQ(map("aaabbb", {.ps = 2, .placement = PsPlacement::pack}), "CWWWPP");
  EXPECT_EQ(map("aaabbbccc", {.ps = 4, .placement = PsPlacement::pack}), "CWWWWPPPP");
  EXPECT_EQ(map("aaabbb", {.ps = 2, .evaluator = true, .placement = PsPlacement::pack}), "CWWPPE");
  EXPECT_EQ(map("ababab", {.ps = 3, .placement = PsPlacement::pack}), "CPWPWP");
}

TEST(RoleMap, PlacesPsPerNodeOnEachHost) {
  EXPECT_EQ(map("aaabbb", {.placement = PsPlacement::per_node}), "CWPWWP");
  EXPECT_EQ(map("aaaabbbb", {.ps = 2, .placement = PsPlacement::per_node}), "CWPPWWPP");
  EXPECT_EQ(map("aaabbbccc", {.evaluator = true, .placement = PsPlacement::per_node}), "CWPWWPWPE");
  expect_refused(
      "abbb", {.placement = PsPlacement::per_node},
      "--role-map ps-per-node: a has 0 ranks left for 1 ps; start more there, or give a smaller --ps, "
      "which counts for each host");
}

TEST(RoleMap, DedicatedPsTakeCompleteHosts) {
  EXPECT_EQ(map("aaabbb", {.placement = PsPlacement::dedicated}), "CWWPPP");
  EXPECT_EQ(map("aabbccdd", {.ps = 4, .placement = PsPlacement::dedicated}), "CWWWPPPP");
  EXPECT_EQ(map("abcdefghi", {.placement = PsPlacement::dedicated}), "CWWWWWWPP") << "a quarter of the hosts";
  EXPECT_EQ(map("aabbcc", {.evaluator = true, .placement = PsPlacement::dedicated}), "CWPPWE")
      << "not the evaluator's host";
  expect_refused(
      "aabbcc", {.ps = 3, .placement = PsPlacement::dedicated},
      "--role-map dedicated: ps take all ranks of a host, so expected --ps to be one of 2, 4, found 3");
  expect_refused(
      "aaaa", {.placement = PsPlacement::dedicated},
      "--role-map dedicated: found no host for ps only, expected one without the coordinator and another "
      "one for the workers; start ranks on more hosts");
  expect_refused(
      "abb", {.placement = PsPlacement::dedicated},
      "--role-map dedicated: found no host for ps only, expected one without the coordinator and another "
      "one for the workers; start ranks on more hosts");
}

TEST(RoleMap, PlacesLocalPsNextToWorkers) {
  EXPECT_EQ(map("aaabbb", {.placement = PsPlacement::local}), "CWPWWP");
  EXPECT_EQ(map("aabbb", {.placement = PsPlacement::local}), "CWWWP")
      << "no ps on a host with a single worker";
  EXPECT_EQ(map("aabbbbbbbb", {.placement = PsPlacement::local}), "CWWWWWWWPP") << "a quarter";
  EXPECT_EQ(map("aaaabbbb", {.ps = 2, .placement = PsPlacement::local}), "CWPPWWPP");
  EXPECT_EQ(map("aaaabb", {.ps = 2, .placement = PsPlacement::local}), "CWPPWP") << "a worker must remain";
  expect_refused("abc", {.placement = PsPlacement::local},
                 "--role-map local: no host has ranks for a worker and a ps; start more ranks on each");
}

TEST(RoleMap, SpreadsSparesOverHostsWithTheFewestPs) {
  EXPECT_EQ(map("aaaaa", {.ps = 2, .spares = 1}), "CWSPP");
  EXPECT_EQ(map("aaabbb", {.ps = 1, .spares = 1}), "CWPWWS");
  EXPECT_EQ(map("aaabbb", {.ps = 2, .spares = 1}),
            "CSPWWP");  // the loss of the first host ends the job anyway
  EXPECT_EQ(map("aaabbbccc", {.ps = 2, .spares = 2}), "CSPWWPWWS");
  EXPECT_EQ(map("aaaabbbb", {.ps = 2, .evaluator = true, .spares = 2}), "CWSPWSPE");
}

TEST(RoleMap, PlacesReplicasOnAnotherHostIfPossible) {
  // Returns the rank of each replica by the index of its ps.
  const auto replicas = [](const std::string& hosts, int ps) {
    std::map<int, int> ranks;
    const auto assignments = map_roles(hosts_of(hosts), {.ps = ps, .replicas = true});
    for (std::size_t rank = 0; rank < assignments.size(); ++rank) {
      if (assignments[rank].role == Role::spare) ranks[assignments[rank].index] = static_cast<int>(rank);
    }
    return ranks;
  };
  EXPECT_EQ(replicas("aaaa", 1), (std::map<int, int>{{0, 2}}));              // CWSP
  EXPECT_EQ(replicas("aaabbb", 2), (std::map<int, int>{{0, 4}, {1, 1}}));    // CSPWSP
  EXPECT_EQ(replicas("aaaabbbb", 0), (std::map<int, int>{{0, 6}, {1, 2}}));  // CWSPWWSP, default number of ps
  EXPECT_EQ(replicas("aaabbbccc", 3), (std::map<int, int>{{0, 7}, {1, 1}, {2, 4}}));  // CSPWSPWSP
  expect_refused("aaa", {.replicas = true},
                 "3 ranks cannot hold 1 coordinator, 1 ps and as many replicas, 1 workers: that makes 4. "
                 "Start 4 ranks, or change --ps and --workers (each at least 1)");
}

TEST(RoleMap, RequestedWorkersLeaveTheRestToThePs) {
  EXPECT_EQ(map("aaaaaa", {.workers = 2}), "CWWPPP");
  EXPECT_EQ(map("aaa", {.workers = 1}), "CWP");
  EXPECT_EQ(map("aaaaa", {.ps = 2, .workers = 2}), "CWWPP");
}

TEST(RoleMap, EvaluatorIsTheLastRank) {
  EXPECT_EQ(map("aaaa", {.evaluator = true}), "CWPE");
  EXPECT_EQ(map("aabb", {.ps = 1, .evaluator = true}), "CPWE");
  EXPECT_EQ(map("aaabbb", {.ps = 2, .workers = 2, .evaluator = true}), "CWPWPE");
  EXPECT_EQ(map("aaaaab", {.ps = 2, .evaluator = true}), "CWWPPE");
}

TEST(RoleMap, RejectsTwoRanksAndNamesTheMinimum) {
  expect_refused("aa", {},
                 "two ranks are too few: a cluster has a coordinator, a ps and a worker. Start three or more "
                 "(mpirun -np 4), or one for all roles in one process");
}

TEST(RoleMap, RejectsRolesThatDoNotFitAndNamesTheNeededRanks) {
  expect_refused("aaaa", {.ps = 4},
                 "4 ranks cannot hold 1 coordinator, 4 ps, 1 workers: that makes 6. Start 6 ranks, or change "
                 "--ps and --workers (each at least 1)");
  expect_refused("aaaa", {.ps = 3},
                 "4 ranks cannot hold 1 coordinator, 3 ps, 1 workers: that makes 5. Start 5 ranks, or change "
                 "--ps and --workers (each at least 1)");
  expect_refused("aaaa", {.workers = 5},
                 "4 ranks cannot hold 1 coordinator, 1 ps, 5 workers: that makes 7. Start 7 ranks, or change "
                 "--ps and --workers (each at least 1)");
  expect_refused("aaaaa", {.ps = 1, .workers = 2},
                 "5 ranks cannot hold 1 coordinator, 1 ps, 2 workers: that makes 4. Start 4 ranks, or change "
                 "--ps and --workers (each at least 1)");
  expect_refused("aaa", {.evaluator = true},
                 "3 ranks cannot hold 1 coordinator, 1 ps, 1 workers, 1 evaluator: that makes 4. Start 4 "
                 "ranks, or change --ps and --workers (each at least 1)");
}

TEST(RoleMap, RejectsTooManySpares) {
  expect_refused("aaa", {.spares = 1},
                 "3 ranks cannot hold 1 coordinator, 1 ps, 1 workers, 1 spares: that makes 4. Start 4 ranks, "
                 "or change --ps, --spares and --workers (each at least 1)");
}

TEST(RoleMap, EveryJobHasTheRolesItNeeds) {
  for (int ranks = 3; ranks <= 12; ++ranks) {
    for (int hosts = 1; hosts <= 4; ++hosts) {
      for (const bool in_blocks : {true, false}) {
        std::string letters;
        for (int rank = 0; rank < ranks; ++rank) {
          letters += static_cast<char>('a' + (in_blocks ? rank * hosts / ranks : rank % hosts));
        }
        for (int ps = 0; ps <= ranks - 2; ++ps) {
          const std::string roles = map(letters, {.ps = ps});
          const auto count = [&](char role) {
            return static_cast<int>(std::count(roles.begin(), roles.end(), role));
          };
          EXPECT_EQ(roles[0], 'C');
          EXPECT_EQ(count('C'), 1);
          const int number_of_hosts = static_cast<int>(std::set<char>(letters.begin(), letters.end()).size());
          EXPECT_EQ(count('P'), ps > 0 ? ps : std::max(1, std::min(number_of_hosts, ranks / 4))) << letters;
          EXPECT_EQ(count('W'), ranks - 1 - count('P'));
          // Spread: unless a host is full, the numbers of two hosts differ by at most one.
          std::map<char, int> ps_on;
          std::map<char, int> free_on;
          for (std::size_t rank = 1; rank < roles.size(); ++rank) {
            ps_on[letters[rank]] += roles[rank] == 'P';
            free_on[letters[rank]] += roles[rank] == 'W';
          }
          for (const auto& [one, n] : ps_on) {
            for (const auto& [other, m] : ps_on) {
              if (free_on[one] > 0) {
                EXPECT_LE(m - n, 1) << letters << " " << roles;
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace capstan::cluster

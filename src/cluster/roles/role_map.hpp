// role_map.hpp -- assigns roles to ranks.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/cluster.hpp"
#include "cluster/membership/member.hpp"
#include "cluster/roles/role_request.hpp"

namespace capstan::cluster {

struct RoleAssignment {
  Role role = Role::worker;
  int index = 0;
  friend bool operator==(const RoleAssignment&, const RoleAssignment&) = default;
};

/// Returns a role and index for each of `hosts` (host name by rank). Rank 0 is the coordinator.
/// `request.placement` selects the ps: by default spread over the hosts, at most one per host and a quarter
/// of the ranks, but at least one. The evaluator is the last rank; spares are spread, first over hosts with
/// the fewest ps; all others are workers. `request.file` is not read. Throws Error(invalid_argument), whose
/// message suggests numbers that fit.
std::vector<RoleAssignment> map_roles(std::span<const std::string> hosts, const RoleRequest& request);

/// Numbers ranks that have these roles. Throws Error(invalid_argument), whose message begins with `source`,
/// if the roles do not form a cluster.
std::vector<RoleAssignment> assignments_of(std::span<const Role> roles, std::string_view source);

/// Returns the members in rank order: by the roles that the ranks requested, by the role file, or by
/// map_roles. Throws Error, whose message names the rank: failed_precondition if its program or settings
/// differ from rank 0's; invalid_argument if its number of replicas differs, or for roles that do not form a
/// cluster.
std::vector<Member> make_members(std::span<const Hello> hellos);
/// Returns the table of a new job, with a new secret; its rank is 0. Throws as make_members does.
Table make_table(std::span<const Hello> hellos);

}  // namespace capstan::cluster

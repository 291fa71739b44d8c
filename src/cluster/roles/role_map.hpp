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
/// the fewest ps; all others are workers. `request.file` is not read. Throws Error(invalid_argument), which
/// says what would fit.
std::vector<RoleAssignment> map_roles(std::span<const std::string> hosts, const RoleRequest& request);

/// The same for ranks with these roles. Throws Error(invalid_argument), which begins with `source`, if they
/// are no cluster.
std::vector<RoleAssignment> assignments_of(std::span<const Role> roles, std::string_view source);

/// Returns the members in rank order: by the roles that the ranks requested, by the role file, or by
/// map_roles. Throws Error: failed_precondition, which names a rank whose program or role settings differ;
/// invalid_argument, which names one with another number of replicas, and for roles that are no cluster.
std::vector<Member> make_members(std::span<const Hello> hellos);
/// Returns the table of a new job, with a new secret; its rank is 0. Throws as make_members does.
Table make_table(std::span<const Hello> hellos);

}  // namespace capstan::cluster

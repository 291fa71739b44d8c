// role_map.hpp -- which rank becomes what.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/cluster.hpp"
#include "cluster/membership/member.hpp"
#include "cluster/roles/role_request.hpp"

namespace capstan::cluster {

struct Place {
  Role role = Role::worker;
  int index = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// One place for each of `hosts` (host name by rank). Rank 0 is the coordinator; ps ranks lie as
/// `request.placement` says, by default spread over the hosts, one a host but at most a quarter of the ranks
/// and at least one; the evaluator is the last rank; spares are spread too, first over the hosts that have
/// the fewest ps; the rest are workers. `request.file` is not read. Throws Error(invalid_argument) that says
/// what would fit.
std::vector<Place> map_roles(std::span<const std::string> hosts, const RoleRequest& request);

/// The places of ranks that have these roles. Throws Error(invalid_argument), which begins with `source`, for
/// what makes no cluster.
std::vector<Place> places_of(std::span<const Role> roles, std::string_view source);

/// The members in rank order: by the roles that the ranks were given one by one, by the role file, or by
/// map_roles. Throws Error: failed_precondition naming a rank whose binary or role settings differ,
/// invalid_argument naming one with another number of replicas, and for roles that make no cluster.
std::vector<Member> make_members(std::span<const Hello> hellos);
/// The table of a new job, with a secret of its own. Its rank is 0. Throws as make_members does.
Table make_table(std::span<const Hello> hellos);

}  // namespace capstan::cluster

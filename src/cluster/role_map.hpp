// role_map.hpp -- which rank becomes what.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "capstan/cluster.hpp"
#include "cluster/member.hpp"

namespace capstan {
class Settings;
}

namespace capstan::cluster {

/// How many of each role were asked for. 0 leaves it to the rule.
struct RoleRequest {
  int ps = 0;
  int workers = 0;
  bool evaluator = false;
  int spares = 0;         // of no ps
  bool replicas = false;  // a spare for each ps, that follows it

  /// From --ps, --workers, --evaluator, --spares and --roles ("coordinator:1,ps:4,worker:*"), which beats the
  /// others.
  static RoleRequest from(const Settings& settings);
  /// For comparing what ranks were told: "ps=2 workers=0 evaluator=0", then " spares=1" and "
  /// replicas-of-ps=2" where there are any.
  std::string text() const;
};

struct Place {
  Role role = Role::worker;
  int index = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// One place for each of `hosts` (host name by rank). Rank 0 is the coordinator; ps ranks are spread over the
/// hosts, by default one a host but at most a quarter of the ranks and at least one; the evaluator is the
/// last rank; spares are spread too, first over the hosts that have the fewest ps; the rest are workers.
/// Throws Error(invalid_argument) that says what would fit.
std::vector<Place> map_roles(std::span<const std::string> hosts, const RoleRequest& request);

/// The members in rank order. Throws Error: failed_precondition naming a rank whose binary or role settings
/// differ, invalid_argument naming one with another number of replicas.
std::vector<Member> make_members(std::span<const Hello> hellos);

}  // namespace capstan::cluster

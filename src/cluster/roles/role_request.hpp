// role_request.hpp -- what was asked for: how many ranks of each role, and where they are to lie.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "capstan/cluster.hpp"

namespace capstan {
class Settings;
}

namespace capstan::cluster {

/// Which ranks become ps. Sent over the wire: add at the end, never renumber.
enum class PsPlacement : std::uint8_t {
  spread = 0,     // one from each host in turn
  pack = 1,       // on as few hosts as possible, the last ones
  per_node = 2,   // as many on each host
  dedicated = 3,  // all ranks of some hosts, the last ones
  local = 4       // on each host beside its workers
};

/// The same on all ranks. 0 leaves a number to the rule.
struct RoleRequest {
  int ps = 0;  // of per_node and local: on each host
  int workers = 0;
  bool evaluator = false;
  int spares = 0;         // of no ps
  bool replicas = false;  // a spare for each ps, that follows it
  PsPlacement placement = PsPlacement::spread;
  std::string file = {};  // says it all, in place of the above

  /// From --ps, --workers, --evaluator, --spares, --role-map and --role-file, and --roles
  /// ("coordinator:1,ps:4,worker:*"), which beats the first four.
  static RoleRequest from(const Settings& settings);
  /// What ranks were told, for comparing: "ps=2 workers=0 evaluator=0", then what else was asked for.
  std::string text() const;
  friend bool operator==(const RoleRequest&, const RoleRequest&) = default;
};

/// "chief" is the coordinator. Nothing for what is no role.
std::optional<Role> role_named(std::string_view name) noexcept;

}  // namespace capstan::cluster

// role_request.hpp -- the requested number of ranks of each role, and their placement.
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

/// Selects the ranks that become ps. Sent over the wire: append only, never renumber.
enum class PsPlacement : std::uint8_t {
  spread = 0,     // one from each host in turn
  pack = 1,       // on as few hosts as possible, the last ones
  per_node = 2,   // the same number on each host
  dedicated = 3,  // all ranks of some hosts, the last ones
  local = 4       // on each host beside its workers
};

/// Must be equal on all ranks. 0 leaves a number to the rule of the placement.
struct RoleRequest {
  int ps = 0;  // for per_node and local: the number on each host
  int workers = 0;
  bool evaluator = false;
  int spares = 0;         // spares that do not replicate a ps
  bool replicas = false;  // adds one spare for each ps, which replicates it
  PsPlacement placement = PsPlacement::spread;
  std::string file = {};  // the role file, which replaces the fields above; "" for none

  /// Reads --ps, --workers, --evaluator, --spares, --role-map and --role-file, and --roles
  /// ("coordinator:1,ps:4,worker:*"), which takes precedence over the first four.
  static RoleRequest from(const Settings& settings);
  /// Text for comparing ranks: "ps=2 workers=0 evaluator=0", then other settings.
  std::string text() const;
  friend bool operator==(const RoleRequest&, const RoleRequest&) = default;
};

/// "chief" is the coordinator. Returns nothing for an unknown role.
std::optional<Role> role_named(std::string_view name) noexcept;

}  // namespace capstan::cluster

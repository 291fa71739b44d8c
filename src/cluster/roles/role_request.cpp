// role_request.cpp -- reads a request from the settings, and parses --roles.
#include "cluster/roles/role_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "base/settings.hpp"
#include "capstan/error.hpp"

namespace capstan::cluster {
namespace {

/// Settings that `roles` replaces.
constexpr std::array kCounts{"ps", "workers", "evaluator", "spares"};

constexpr std::array<std::pair<std::string_view, PsPlacement>, 5> kPlacements{
    {{"spread", PsPlacement::spread},
     {"pack", PsPlacement::pack},
     {"ps-per-node", PsPlacement::per_node},
     {"dedicated", PsPlacement::dedicated},
     {"local", PsPlacement::local}}};

/// Maximum of a count, as in the settings table.
constexpr int kMaxRanks = 1'000'000;

Error bad_roles(const std::string& text, const std::string& why) {
  return Error(Code::invalid_argument,
               fmt::format("roles \"{}\": {}; expected ROLE:COUNT,... with roles coordinator, ps, "
                           "worker, evaluator, spare, such as \"coordinator:1,ps:4,worker:*\"",
                           text, why));
}

/// Applies one item of `text`, such as "ps:4", to `request`. "worker:*" sets `workers` to 0, which makes all
/// other ranks workers.
void apply_item(RoleRequest& request, const std::string& text, const std::string& name,
                const std::string& number) {
  const auto role = role_named(name);
  if (!role) throw bad_roles(text, "\"" + name + "\" is not a role");
  if (role == Role::ps && number == "local") {
    request.placement = PsPlacement::local;
    return;
  }
  int count = 0;
  if (number == "*") {
    if (role != Role::worker) throw bad_roles(text, "only worker may be *");
  } else {
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
    if (error != std::errc() || end != number.data() + number.size() || count < 0 || count > kMaxRanks) {
      throw bad_roles(text, "\"" + number + "\" is not a valid count");
    }
  }
  switch (*role) {
    case Role::coordinator:
      if (count != 1) throw bad_roles(text, "the count of coordinator must be 1");
      return;
    case Role::ps:
      if (count < 1) throw bad_roles(text, "there must be at least one ps");
      request.ps = count;
      return;
    case Role::worker:
      if (number != "*" && count < 1) throw bad_roles(text, "there must be at least one worker");
      request.workers = count;
      return;
    case Role::evaluator:
      if (count > 1) throw bad_roles(text, "the count of evaluator must be 0 or 1");
      request.evaluator = count == 1;
      return;
    case Role::spare:
      request.spares = count;
      return;
  }
}

RoleRequest parse_roles(const std::string& text) {
  RoleRequest request;
  std::set<std::string> seen;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t colon = item.find(':');
    if (colon == std::string::npos) throw bad_roles(text, "\"" + item + "\" has no count");
    const std::string name = item.substr(0, colon);
    apply_item(request, text, name, item.substr(colon + 1));
    if (!seen.insert(name == "chief" ? "coordinator" : name).second) {
      throw bad_roles(text, "\"" + name + "\" occurs twice");
    }
  }
  return request;
}

}  // namespace

std::optional<Role> role_named(std::string_view name) noexcept {
  if (name == "chief") return Role::coordinator;
  for (const Role role : {Role::coordinator, Role::ps, Role::worker, Role::evaluator, Role::spare}) {
    if (name == to_string(role)) return role;
  }
  return std::nullopt;
}

namespace {

/// Returns true if --roles determines the counts. If the program itself sets --roles, a count from a file,
/// the environment or an argument overrides it. Otherwise, --roles overrides all counts.
bool roles_apply(const Settings& settings) {
  if (settings.text("roles").empty()) return false;
  const Origin::Kind source = settings.origin("roles").kind;
  return source != Origin::Kind::program ||
         std::all_of(kCounts.begin(), kCounts.end(),
                     [&](const char* name) { return settings.origin(name).kind <= source; });
}

}  // namespace

RoleRequest RoleRequest::from(const Settings& settings) {
  RoleRequest request;
  const auto placement = std::find_if(kPlacements.begin(), kPlacements.end(), [&](const auto& entry) {
    return entry.first == settings.text("role-map");
  });
  request.placement = placement->second;
  if (roles_apply(settings)) {
    const RoleRequest roles = parse_roles(settings.text("roles"));
    const bool sets_placement = roles.placement != PsPlacement::spread;
    request = {.ps = roles.ps,
               .workers = roles.workers,
               .evaluator = roles.evaluator,
               .spares = roles.spares,
               .placement = sets_placement ? roles.placement : request.placement};
  } else {
    request.ps = static_cast<int>(settings.integer("ps"));
    request.workers = static_cast<int>(settings.integer("workers"));
    request.evaluator = settings.flag("evaluator");
    request.spares = static_cast<int>(settings.integer("spares"));
  }
  request.replicas = settings.integer("replicas-of-ps") > 1;
  request.file = settings.text("role-file");
  if (request.replicas && request.spares > 0) {
    throw Error(
        Code::invalid_argument,
        "--spares cannot be combined with --replicas-of-ps 2, which gives each ps its own spare; omit one of "
        "the two");
  }
  return request;
}

std::string RoleRequest::text() const {
  std::string out = fmt::format("ps={} workers={} evaluator={}", ps, workers, evaluator ? 1 : 0);
  if (spares > 0) out += fmt::format(" spares={}", spares);
  if (replicas) out += " replicas-of-ps=2";
  if (placement != PsPlacement::spread) {
    const auto at = static_cast<std::size_t>(placement);  // may be out of range if another rank sent it
    out += fmt::format(" role-map={}", at < kPlacements.size() ? kPlacements[at].first : "?");
  }
  if (!file.empty()) out += " role-file=" + file;
  return out;
}

}  // namespace capstan::cluster

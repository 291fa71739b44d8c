// ucx_look.cpp -- the child that opens UCX, and what its output means.
#include "launch/doctor/ucx_look.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string_view>

#include "base/command_output.hpp"
#include "base/json.hpp"
#include "base/settings.hpp"
#include "capstan/error.hpp"
#include "transport/ucx/fabric.hpp"
#include "transport/ucx/version.hpp"

namespace capstan::launch::doctor {
namespace {

constexpr std::chrono::seconds kUcxOpensWithin{25};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// "[1795371013.66] [vm:27906:0]  parser.c:1908 UCX  WARN  unused ..." is "unused ..."; "" of another line.
std::string complaint_in(const std::string& line) {
  for (const char* level : {" UCX  WARN  ", " UCX  ERROR ", " UCX  FATAL "}) {
    const std::size_t at = line.find(level);
    if (at != std::string::npos) return line.substr(at + std::string_view(level).size());
  }
  return {};
}

/// Of "unused env variables: UCX_A,UCX_B (set ...".
std::vector<std::string> unused_in(const std::string& complaint) {
  std::vector<std::string> names;
  const std::size_t colon = complaint.find(':');
  if (!complaint.starts_with("unused env variable") || colon == std::string::npos) return names;
  std::istringstream list(complaint.substr(colon + 1, complaint.find('(') - colon - 1));
  for (std::string name; std::getline(list, name, ',');) {
    std::erase(name, ' ');
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

/// UCX asks for what is available: devices and transports.
bool is_about_devices(std::string_view complaint) { return contains(complaint, "is not available"); }

UcxLook ask_child() {
  const auto end =
      command_output({"/proc/self/exe", "doctor", "--look", "ucx"}, kUcxOpensWithin, Errors::kept,
                     // Its own log is read: as warnings, in its output.
                     {"UCX_LOG_LEVEL=warn", "UCX_LOG_FILE", "UCX_WARN_UNUSED_ENV_VARS=y"});
  UcxLook look = end ? read_ucx_look(end->text) : UcxLook();
  if (!end) look.failure = fmt::format("UCX was not open after {} s", kUcxOpensWithin.count());
  if (look.failure.empty() && end->exit_code != 0)
    look.failure = fmt::format("the process that opened UCX ended with exit code {}", end->exit_code);
  // Capstan sets one itself, which a UCX without TCP does not use.
  std::erase_if(look.unused, [](const std::string& name) { return std::getenv(name.c_str()) == nullptr; });
  return look;
}

/// Made once; two checks read it.
const UcxLook& ucx_look() {
  static const UcxLook look = ask_child();
  return look;
}

}  // namespace

int look_at_ucx() {
  nlohmann::json found;
  try {
    const transport::UcxFabric fabric;  // UCX looks for unknown variables when it makes a worker
    const transport::UcxOffer offer = transport::ucx_offer();
    found = {{"version", offer.version},           {"transports", offer.allowed_transports},
             {"devices", offer.allowed_devices},   {"network", offer.network},
             {"in_memory", offer.in_memory},       {"other", offer.other},
             {"known", transport::ucx_variables()}};
  } catch (const std::exception& error) {
    found = {{"failure", error.what()}};
  }
  std::cout << found.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  return 0;
}

UcxLook read_ucx_look(const std::string& output) {
  UcxLook look;
  look.failure = "the process that opened UCX said nothing";
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (const std::string complaint = complaint_in(line); !complaint.empty()) {
      const std::vector<std::string> names = unused_in(complaint);
      for (const std::string& name : names) {
        if (std::find(look.unused.begin(), look.unused.end(), name) == look.unused.end())
          look.unused.push_back(name);
      }
      if (!names.empty()) continue;
      if (std::find(look.complaints.begin(), look.complaints.end(), complaint) == look.complaints.end())
        look.complaints.push_back(complaint);
      continue;
    }
    const auto found = try_parse_json(line);
    if (!found.is_object()) continue;
    look.failure = found.value("failure", "");
    look.offer = {found.value("version", ""),
                  found.value("transports", ""),
                  found.value("devices", ""),
                  found.value("network", std::vector<std::string>()),
                  found.value("in_memory", std::vector<std::string>()),
                  found.value("other", std::vector<std::string>())};
    look.known = found.value("known", std::vector<std::string>());
  }
  return look;
}

Finding judge_ucx_variables(const UcxLook& look) {
  Finding finding;
  for (const std::string& name : look.unused) {
    const std::string nearest = nearest_name(name, look.known);
    finding = both(finding, warn(name + " is not used by UCX",
                                 nearest.empty()
                                     ? fmt::format("unset {}: misspelled, or of a transport that is not here "
                                                   "(ucx_info -caf lists all)",
                                                   name)
                                     : fmt::format("{}: did you mean {}?", name, nearest)));
  }
  for (const std::string& complaint : look.complaints) {
    if (is_about_devices(complaint)) continue;
    constexpr const char* kMend = "correct or unset the variable; ucx_info -caf shows all";
    finding = both(
        finding, look.failure.empty() ? warn("UCX: " + complaint, kMend) : fail("UCX: " + complaint, kMend));
  }
  if (finding.verdict != Verdict::pass) return finding;
  return pass("UCX uses every UCX_* and CAPSTAN_UCX_* variable that is set");
}

Finding judge_ucx_devices(const UcxLook& look) {
  if (!look.failure.empty())
    return fail(look.failure,
                "UCX_LOG_LEVEL=info capstan settings --transports; then UCX_TLS and UCX_NET_DEVICES");
  Finding finding;
  for (const std::string& complaint : look.complaints) {
    if (!is_about_devices(complaint)) continue;
    finding = both(finding, warn("UCX: " + complaint, "correct UCX_NET_DEVICES or UCX_TLS (ucx_info -d)"));
  }
  const std::string seen = fmt::format(
      "with UCX_TLS={} UCX_NET_DEVICES={}: {}; on this host: {}", look.offer.allowed_transports,
      look.offer.allowed_devices,
      look.offer.network.empty() ? "no network" : fmt::format("{}", fmt::join(look.offer.network, " ")),
      fmt::join(look.offer.in_memory, " "));
  if (look.offer.network.empty()) {
    return both(finding, fail(seen,
                              "ps need a network transport (tcp, rc, dc), even where their memory is mapped: "
                              "look at UCX_TLS and UCX_NET_DEVICES"));
  }
  const auto reaches_others = [](const std::string& name) { return !transport::is_loopback(name); };
  if (std::none_of(look.offer.network.begin(), look.offer.network.end(), reaches_others)) {
    return both(finding, warn(seen, "no device reaches another host: UCX_NET_DEVICES, and `ip link`"));
  }
  return both(finding, pass(seen));
}

Finding check_ucx_variables(const Request&) { return judge_ucx_variables(ucx_look()); }
Finding check_ucx_devices(const Request&) { return judge_ucx_devices(ucx_look()); }

}  // namespace capstan::launch::doctor

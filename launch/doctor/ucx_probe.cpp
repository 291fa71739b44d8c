// ucx_probe.cpp -- runs a child process that opens UCX, and parses the output of the child.
#include "launch/doctor/ucx_probe.hpp"

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

constexpr std::chrono::seconds kUcxTimeout{25};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Returns "unused ..." for "[1795371013.66] [vm:27906:0]  parser.c:1908 UCX  WARN  unused ...". Returns ""
/// for a line that is neither a warning nor an error.
std::string complaint_in(const std::string& line) {
  for (const char* level : {" UCX  WARN  ", " UCX  ERROR ", " UCX  FATAL "}) {
    const std::size_t at = line.find(level);
    if (at != std::string::npos) return line.substr(at + std::string_view(level).size());
  }
  return {};
}

/// Names in "unused env variables: UCX_A,UCX_B (set ...".
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

/// True for warnings about devices and transports rather than variables.
bool is_about_devices(std::string_view complaint) { return contains(complaint, "is not available"); }

UcxProbe run_probe_child() {
  const auto output =
      command_output({"/proc/self/exe", "doctor", "--probe", "ucx"}, kUcxTimeout, StderrMode::captured,
                     // Makes UCX log warnings to the parsed output. A bare name removes a variable.
                     {"UCX_LOG_LEVEL=warn", "UCX_LOG_FILE", "UCX_WARN_UNUSED_ENV_VARS=y"});
  UcxProbe probe = output ? parse_ucx_probe(output->text) : UcxProbe();
  if (!output) probe.failure = fmt::format("opening UCX took longer than {} s", kUcxTimeout.count());
  if (probe.failure.empty() && output->exit_code != 0)
    probe.failure = fmt::format("the process that opened UCX ended with exit code {}", output->exit_code);
  // Drops variables that are not set here: the child sets one for TCP, which is unused if UCX has no TCP.
  std::erase_if(probe.unused, [](const std::string& name) { return std::getenv(name.c_str()) == nullptr; });
  return probe;
}

/// Runs the child once; two checks use the result.
const UcxProbe& ucx_probe() {
  static const UcxProbe probe = run_probe_child();
  return probe;
}

}  // namespace

int run_ucx_probe() {
  nlohmann::json found;
  try {
    const transport::UcxFabric fabric;  // UCX reports unknown variables when it creates a worker
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

UcxProbe parse_ucx_probe(const std::string& output) {
  UcxProbe probe;
  probe.failure = "the process that opened UCX printed no result";
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (const std::string complaint = complaint_in(line); !complaint.empty()) {
      const std::vector<std::string> names = unused_in(complaint);
      for (const std::string& name : names) {
        if (std::find(probe.unused.begin(), probe.unused.end(), name) == probe.unused.end())
          probe.unused.push_back(name);
      }
      if (!names.empty()) continue;
      if (std::find(probe.complaints.begin(), probe.complaints.end(), complaint) == probe.complaints.end())
        probe.complaints.push_back(complaint);
      continue;
    }
    const auto found = try_parse_json(line);
    if (!found.is_object()) continue;
    probe.failure = found.value("failure", "");
    probe.offer = {found.value("version", ""),
                   found.value("transports", ""),
                   found.value("devices", ""),
                   found.value("network", std::vector<std::string>()),
                   found.value("in_memory", std::vector<std::string>()),
                   found.value("other", std::vector<std::string>())};
    probe.known = found.value("known", std::vector<std::string>());
  }
  return probe;
}

Finding judge_ucx_variables(const UcxProbe& probe) {
  Finding finding;
  for (const std::string& name : probe.unused) {
    const std::string nearest = nearest_name(name, probe.known);
    finding =
        combine(finding, warn(name + " is not used by UCX",
                              nearest.empty() ? fmt::format("unset {}: it is misspelled, or belongs to a "
                                                            "missing transport (ucx_info -caf lists all)",
                                                            name)
                                              : fmt::format("{}: did you mean {}?", name, nearest)));
  }
  for (const std::string& complaint : probe.complaints) {
    if (is_about_devices(complaint)) continue;
    constexpr const char* kFix = "correct or unset the variable; ucx_info -caf lists all";
    finding = combine(
        finding, probe.failure.empty() ? warn("UCX: " + complaint, kFix) : fail("UCX: " + complaint, kFix));
  }
  if (finding.verdict != Verdict::pass) return finding;
  return pass("UCX uses every UCX_* and CAPSTAN_UCX_* variable that is set");
}

Finding judge_ucx_devices(const UcxProbe& probe) {
  if (!probe.failure.empty())
    return fail(probe.failure,
                "run UCX_LOG_LEVEL=info capstan settings --transports; then correct UCX_TLS or "
                "UCX_NET_DEVICES");
  Finding finding;
  for (const std::string& complaint : probe.complaints) {
    if (!is_about_devices(complaint)) continue;
    finding = combine(finding, warn("UCX: " + complaint, "correct UCX_NET_DEVICES or UCX_TLS (ucx_info -d)"));
  }
  const std::string observed = fmt::format(
      "with UCX_TLS={} UCX_NET_DEVICES={}: {}; within a host: {}", probe.offer.allowed_transports,
      probe.offer.allowed_devices,
      probe.offer.network.empty() ? "no network"
                                  : fmt::format("network: {}", fmt::join(probe.offer.network, " ")),
      probe.offer.in_memory.empty() ? "none" : fmt::format("{}", fmt::join(probe.offer.in_memory, " ")));
  if (probe.offer.network.empty()) {
    return combine(finding,
                   fail(observed,
                        "allow a network transport (tcp, rc, dc) in UCX_TLS and UCX_NET_DEVICES: a ps needs "
                        "one even if its memory is mapped"));
  }
  const auto reaches_others = [](const std::string& name) { return !transport::is_loopback(name); };
  if (std::none_of(probe.offer.network.begin(), probe.offer.network.end(), reaches_others)) {
    return combine(
        finding,
        warn(observed, "allow a device that reaches other hosts in UCX_NET_DEVICES; check `ip link`"));
  }
  return combine(finding, pass(observed));
}

Finding check_ucx_variables(const Request&) { return judge_ucx_variables(ucx_probe()); }
Finding check_ucx_devices(const Request&) { return judge_ucx_devices(ucx_probe()); }

}  // namespace capstan::launch::doctor

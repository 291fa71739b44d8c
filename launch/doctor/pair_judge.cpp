// pair_judge.cpp -- kinds of links, expectations and their sources.
#include "launch/doctor/pair_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

namespace capstan::launch::doctor {
namespace {

/// Through one core: what TCP gave here through loopback is near it, so that a faster link is not to blame.
constexpr double kOneCoreOfTcp = 1e9;

std::string ranks_of(const Link& link) { return fmt::format("{} -> {}", link.from, link.to); }

std::string class_of(const Link& link) { return link.same_host() ? "same host" : "other host"; }

/// As docs/running.md names them.
std::string way_of(const Link& link) {
  if (link.mapped) return fmt::format("mapped memory, calls over {}", link.transports);
  return fmt::format("{} over {}", link.hardware_rma ? "remote memory access" : "active messages",
                     link.transports);
}

auto kind_of(const Link& link) {
  return std::tuple(!link.same_host(), !link.failure.empty(), link.mapped, link.hardware_rma,
                    link.transports);
}

std::string microseconds(double seconds) { return fmt::format("{:.3g} us", seconds * 1e6); }
std::string rate(double bytes_per_second) { return fmt::format("{:.3g} GB/s", bytes_per_second / 1e9); }

/// Items by the kind of their link, in the order of kinds.
template <class Item>
std::map<std::tuple<bool, bool, bool, bool, std::string>, std::vector<const Item*>> by_kind(
    const std::vector<Item>& items, const std::function<const Link&(const Item&)>& link_of) {
  std::map<std::tuple<bool, bool, bool, bool, std::string>, std::vector<const Item*>> kinds;
  for (const Item& item : items) kinds[kind_of(link_of(item))].push_back(&item);
  return kinds;
}

Finding failed_link(const Link& link, std::size_t count) {
  return fail(
      fmt::format("{}: {} without a way, first rank {} ({} -> {}): {}", class_of(link),
                  count == 1 ? "1 pair" : fmt::format("{} pairs", count), ranks_of(link), link.from_host,
                  link.to_host, link.failure),
      "ps need a network transport (tcp, rc, dc) in UCX_TLS that both have, a device in UCX_NET_DEVICES that "
      "leads there, and no firewall between");
}

Finding judge_link(const Link& link, std::size_t count, bool has_adapter) {
  if (!link.failure.empty()) return failed_link(link, count);
  const std::string seen =
      fmt::format("{}: {} ({}, first rank {})", class_of(link), way_of(link),
                  count == 1 ? "1 pair" : fmt::format("{} pairs", count), ranks_of(link));
  if (link.mapped || (!link.same_host() && link.hardware_rma)) return pass(seen);
  if (link.same_host())
    return warn(seen, "memory cannot be mapped: another IPC namespace, or UCX_TLS lacks sysv and posix");
  if (has_adapter) {
    return warn(seen + ", while there is an InfiniBand or RoCE adapter",
                "UCX_TLS and UCX_NET_DEVICES; a UCX that was built with verbs (ucx_info -d shows rc or dc)");
  }
  return pass(seen + "; there is no adapter that could do more");
}

}  // namespace

std::vector<Finding> judge_links(const std::vector<Link>& links, bool has_adapter) {
  std::vector<Finding> findings;
  for (const auto& [kind, same] : by_kind<Link>(links, [](const Link& link) -> const Link& { return link; }))
    findings.push_back(judge_link(*same.front(), same.size(), has_adapter));
  if (findings.empty()) findings.push_back(skip("one rank"));
  return findings;
}

std::vector<Finding> judge_probes(const std::vector<Probe>& probes) {
  std::vector<Finding> findings;
  for (const auto& [kind, same] :
       by_kind<Probe>(probes, [](const Probe& probe) -> const Link& { return probe.link; })) {
    // One that did not complete stands for its kind.
    const Probe& probe = **std::min_element(
        same.begin(), same.end(), [](const Probe* a, const Probe* b) { return a->completed < b->completed; });
    const Link& link = probe.link;
    if (!link.failure.empty()) {
      findings.push_back(failed_link(link, same.size()));
      continue;
    }
    const std::string outcome =
        probe.completed
            ? fmt::format("a put and a flush over {} took {:.3g} ms while rank {} made no progress",
                          link.transports, probe.milliseconds, link.to)
            : fmt::format(
                  "a put and a flush over {} did not end within 200 ms while rank {} made no "
                  "progress: UCX emulates RMA",
                  link.transports, link.to);
    const std::string seen = fmt::format("{}: {}", class_of(link), outcome);
    if (probe.completed) {
      findings.push_back(pass(seen));
    } else if (link.mapped) {
      findings.push_back(pass(seen + "; Capstan maps the memory and needs none"));
    } else {
      findings.push_back(warn(seen + "; Capstan sends active messages, which the ps's CPU serves",
                              link.same_host()
                                  ? "let memory be mapped, see the check \"transports\""
                                  : "an InfiniBand or RoCE adapter, and a UCX with rc or dc (ucx_info -d)"));
    }
  }
  if (findings.empty()) findings.push_back(skip("one rank"));
  return findings;
}

Expectation expectation_of(const Speed& speed) {
  const Link& link = speed.link;
  const bool tcp = link.transports.find("tcp/") != std::string::npos;
  Expectation expected;
  // Of a machine that does nothing else; docs/doctor.md says what was measured.
  expected.latency = link.hardware_rma ? 10e-6 : tcp && link.same_host() ? 60e-6 : 200e-6;
  std::string latency = link.hardware_rma  ? "rc and dc, docs/doctor.md"
                        : link.same_host() ? "TCP within a host, docs/doctor.md"
                                           : "TCP over Ethernet, docs/doctor.md";
  std::string bandwidth;
  if (link.mapped) {
    expected.bandwidth = speed.own_copies / 3;
    bandwidth = fmt::format("a copy within this rank's own memory, now: {}", rate(speed.own_copies));
  } else if (speed.link_gigabits > 0) {
    const double link_rate = speed.link_gigabits * 1e9 / 8;
    expected.bandwidth = std::min(link_rate / 2, link.hardware_rma ? link_rate : kOneCoreOfTcp);
    bandwidth = fmt::format("the device's rate in /sys: {}", rate(link_rate));
  } else {
    bandwidth = "a device that does not say its rate in /sys";
  }
  expected.source = fmt::format("{}, and {}", latency, bandwidth);
  return expected;
}

std::vector<Finding> judge_speeds(const std::vector<Speed>& speeds) {
  std::vector<Finding> findings;
  for (const auto& [kind, same] :
       by_kind<Speed>(speeds, [](const Speed& speed) -> const Link& { return speed.link; })) {
    const Speed& speed = **std::min_element(
        same.begin(), same.end(), [](const Speed* a, const Speed* b) { return a->bandwidth < b->bandwidth; });
    if (!speed.link.failure.empty()) {
      findings.push_back(failed_link(speed.link, same.size()));
      continue;
    }
    const Expectation expected = expectation_of(speed);
    const std::string least =
        expected.bandwidth > 0 ? fmt::format("{} or more", rate(expected.bandwidth)) : "any";
    const std::string seen = fmt::format(
        "{}, rank {} -> {}, {}: latency {} (expected {} or less), bandwidth {} (expected {}), by {}",
        class_of(speed.link), speed.link.from, speed.link.to, way_of(speed.link), microseconds(speed.latency),
        microseconds(expected.latency), rate(speed.bandwidth), least, expected.source);
    const bool slow = speed.latency > expected.latency || speed.bandwidth < expected.bandwidth;
    findings.push_back(slow ? warn(seen,
                                   "busy cores, ranks bound to one core, or the wrong device: the checks "
                                   "\"binding\" and \"transports\"; then again on an idle machine")
                            : pass(seen));
  }
  if (findings.empty()) findings.push_back(skip("one rank"));
  return findings;
}

nlohmann::json measurements(const std::vector<Speed>& speeds) {
  nlohmann::json all = nlohmann::json::array();
  for (const Speed& speed : speeds) {
    const Link& link = speed.link;
    nlohmann::json one{{"class", class_of(link)},
                       {"from", link.from},
                       {"to", link.to},
                       {"from_host", link.from_host},
                       {"to_host", link.to_host}};
    if (!link.failure.empty()) {
      one["failure"] = link.failure;
    } else {
      const Expectation expected = expectation_of(speed);
      one["way"] = way_of(link);
      one["latency_us"] = speed.latency * 1e6;
      one["bytes_per_second"] = speed.bandwidth;
      one["expected"] = {{"latency_us", expected.latency * 1e6}, {"source", expected.source}};
      if (expected.bandwidth > 0) one["expected"]["bytes_per_second"] = expected.bandwidth;
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace capstan::launch::doctor

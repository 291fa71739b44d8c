// pair_judge.cpp -- groups links by kind and compares them with expectations.
#include "launch/doctor/pair_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <tuple>

#include "launch/units.hpp"

namespace capstan::launch::doctor {
namespace {

/// Bytes per second of TCP on one core, about the rate of loopback: bounds any link without hardware RMA.
constexpr double kTcpBytesPerSecondPerCore = 1e9;

std::string ranks_of(const Link& link) { return fmt::format("{} -> {}", link.from, link.to); }

std::string class_of(const Link& link) { return link.same_host() ? "same host" : "other host"; }

/// The path and its transports, in the words of docs/running.md.
std::string route_text(const Link& link) {
  if (link.mapped) return fmt::format("mapped memory, calls over {}", link.transports);
  return fmt::format("{} over {}", link.hardware_rma ? "remote memory access" : "active messages",
                     link.transports);
}

auto kind_of(const Link& link) {
  return std::tuple(!link.same_host(), !link.failure.empty(), link.mapped, link.hardware_rma,
                    link.transports);
}

std::string rate(double bytes_per_second) { return rate_text(bytes_per_second, "B"); }

/// Items by the kind of their link, in the order of kinds.
template <class Item>
std::map<std::tuple<bool, bool, bool, bool, std::string>, std::vector<const Item*>> by_kind(
    const std::vector<Item>& items, const std::function<const Link&(const Item&)>& link_of) {
  std::map<std::tuple<bool, bool, bool, bool, std::string>, std::vector<const Item*>> kinds;
  for (const Item& item : items) kinds[kind_of(link_of(item))].push_back(&item);
  return kinds;
}

Finding failed_link(const Link& link, std::size_t count) {
  return fail(fmt::format("{}: {} not connected, for example rank {} ({} -> {}): {}", class_of(link),
                          count == 1 ? "1 pair" : fmt::format("{} pairs", count), ranks_of(link),
                          link.from_host, link.to_host, link.failure),
              "allow a common network transport (tcp, rc, dc) in UCX_TLS and a device in UCX_NET_DEVICES "
              "that reaches "
              "the other host; check firewalls");
}

Finding judge_link(const Link& link, std::size_t count, bool both_have_adapter) {
  if (!link.failure.empty()) return failed_link(link, count);
  const std::string observed =
      fmt::format("{}: {} ({}, for example rank {})", class_of(link), route_text(link),
                  count == 1 ? "1 pair" : fmt::format("{} pairs", count), ranks_of(link));
  if (link.mapped || (!link.same_host() && link.hardware_rma)) return pass(observed);
  if (link.same_host())
    return warn(observed, "make memory mappable: use one IPC namespace, and allow sysv or posix in UCX_TLS");
  if (both_have_adapter) {
    return warn(observed + ", although both hosts have an InfiniBand or RoCE adapter",
                "check UCX_TLS and UCX_NET_DEVICES; use a UCX built with verbs (ucx_info -d lists rc or dc)");
  }
  return pass(observed + "; no RDMA adapter on at least one of the two hosts");
}

}  // namespace

std::vector<Finding> judge_links(const std::vector<Link>& links, const std::set<std::string>& with_adapter) {
  std::vector<Finding> findings;
  for (const bool both_have_adapter : {false, true}) {
    std::vector<Link> judged;
    std::copy_if(links.begin(), links.end(), std::back_inserter(judged), [&](const Link& link) {
      return (with_adapter.contains(link.from_host) && with_adapter.contains(link.to_host)) ==
             both_have_adapter;
    });
    for (const auto& [kind, same] :
         by_kind<Link>(judged, [](const Link& link) -> const Link& { return link; }))
      findings.push_back(judge_link(*same.front(), same.size(), both_have_adapter));
  }
  if (findings.empty()) findings.push_back(skip("one rank"));
  return findings;
}

std::vector<Finding> judge_rma_probes(const std::vector<RmaProbe>& rma_probes) {
  std::vector<Finding> findings;
  for (const auto& [kind, same] :
       by_kind<RmaProbe>(rma_probes, [](const RmaProbe& probe) -> const Link& { return probe.link; })) {
    // Reports one probe of each kind of link: one that did not complete, if there is one.
    const RmaProbe& probe =
        **std::min_element(same.begin(), same.end(),
                           [](const RmaProbe* a, const RmaProbe* b) { return a->completed < b->completed; });
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
                  "a put and a flush over {} did not complete within 200 ms while rank {} made no "
                  "progress: UCX emulates RMA",
                  link.transports, link.to);
    const std::string observed = fmt::format("{}: {}", class_of(link), outcome);
    if (probe.completed) {
      findings.push_back(pass(observed));
    } else if (link.mapped) {
      findings.push_back(pass(observed + "; not needed, since Capstan maps the memory"));
    } else {
      findings.push_back(
          warn(observed + "; Capstan uses active messages, which the CPU of the ps serves",
               link.same_host() ? "make memory mappable, see the check \"transports\""
                                : "use an InfiniBand or RoCE adapter and a UCX with rc or dc (ucx_info -d)"));
    }
  }
  if (findings.empty()) findings.push_back(skip("one rank"));
  return findings;
}

Expectation expectation_of(const Speed& speed) {
  const Link& link = speed.link;
  const bool tcp = link.transports.find("tcp/") != std::string::npos;
  Expectation expected;
  // For an idle machine; docs/doctor.md has the measurements.
  expected.latency = link.hardware_rma ? 10e-6 : tcp && link.same_host() ? 60e-6 : 200e-6;
  std::string latency = link.hardware_rma  ? "rc and dc, docs/doctor.md"
                        : link.same_host() ? "TCP within a host, docs/doctor.md"
                                           : "TCP over Ethernet, docs/doctor.md";
  std::string bandwidth;
  if (link.mapped) {
    expected.bandwidth = speed.memcpy_rate / 3;
    bandwidth = fmt::format("a third of the rate of memcpy in this rank, {}", rate(speed.memcpy_rate));
  } else if (speed.link_gigabits > 0) {
    const double link_rate = speed.link_gigabits * 1e9 / 8;
    expected.bandwidth = std::min(link_rate / 2, link.hardware_rma ? link_rate : kTcpBytesPerSecondPerCore);
    bandwidth = fmt::format("half of the device's rate in /sys, {}", rate(link_rate));
  } else {
    bandwidth = "unlimited, because /sys has no rate of the device";
  }
  expected.source = fmt::format("latency for {}; bandwidth {}", latency, bandwidth);
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
    const std::string observed = fmt::format(
        "{}, rank {} -> {}, {}: latency {} (expected {} or less), bandwidth {} (expected {}); limits: {}",
        class_of(speed.link), speed.link.from, speed.link.to, route_text(speed.link),
        seconds_text(speed.latency), seconds_text(expected.latency), rate(speed.bandwidth), least,
        expected.source);
    const bool slow = speed.latency > expected.latency || speed.bandwidth < expected.bandwidth;
    findings.push_back(
        slow ? warn(observed,
                    "see the checks \"binding\" (busy cores, several ranks on one core) and \"transports\" "
                    "(wrong device); repeat on an idle machine")
             : pass(observed));
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
      one["route"] = route_text(link);
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

// routes.cpp -- formats the output of `capstan settings --transports`.
#include "launch/routes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "capstan/error.hpp"

namespace capstan::launch {
namespace {

using client::Path;

/// Number of routes that are listed by name.
constexpr std::size_t kMaxNamed = 8;

struct Kind {
  const Route* first;
  std::vector<std::string> routes;
};

/// Groups failures by code, since each message names a different ps; only the first message is printed.
auto kind_of(const Route& route) {
  return std::tuple(!route.same_host(), route.code, route.path, route.transports);
}

std::vector<Kind> by_kind(const std::vector<Route>& routes) {
  std::vector<Kind> kinds;
  for (const Route& route : routes) {
    const std::string text =
        fmt::format("{} on {} -> {} on {}", route.from, route.from_host, route.to, route.to_host);
    const auto found = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const Kind& kind) { return kind_of(*kind.first) == kind_of(route); });
    if (found != kinds.end()) {
      found->routes.push_back(text);
    } else {
      kinds.push_back({&route, {text}});
    }
  }
  std::sort(kinds.begin(), kinds.end(),
            [](const Kind& a, const Kind& b) { return kind_of(*a.first) < kind_of(*b.first); });
  return kinds;
}

std::string describe(const Route& route) {
  if (!route.failure.empty()) return "unreachable";
  if (route.path == Path::in_process) return std::string(to_string(route.path));
  // A mapped ps needs a connection, too.
  if (route.path == Path::mapped) return fmt::format("mapped memory; calls over {}", route.transports);
  const bool emulated = route.path == Path::rma && !route.hardware_rma;
  return fmt::format("{}{} over {}", emulated ? "emulated " : "", to_string(route.path), route.transports);
}

std::string reason(const Route& route, std::string_view window) {
  if (!route.failure.empty()) return route.failure;
  const bool asked = window == "rma" || window == "am";
  switch (route.path) {
    case Path::in_process:
      return "the ps is a thread of this process";
    case Path::mapped:
      return "loads and stores in the memory of the ps, the fastest path";
    case Path::rma:
      if (route.hardware_rma) {
        return asked ? "--window rma" : "the adapter accesses the memory of the ps without its CPU";
      }
      return "--window rma, but UCX has no rc or dc transport to the ps: UCX emulates RMA on the ps's CPU, "
             "slower than active messages";
    case Path::messages:
      if (asked) return fmt::format("--window {}", window);
      if (route.same_host()) {
        return "the memory of the ps cannot be mapped: another IPC namespace, or UCX_TLS lacks sysv and "
               "posix";
      }
      return "UCX has no rc or dc transport to the ps, so its CPU serves reads and pushes; check UCX_TLS, "
             "UCX_NET_DEVICES and ucx_info -d";
  }
  return {};
}

bool accepted(const Route& route, std::string_view required) {
  return client::good_enough(required, route.path, route.same_host(), route.hardware_rma);
}

std::string verdict(const Route& route) {
  if (accepted(route, "mapped")) return "mapped and rdma accept it";
  return accepted(route, "rdma") ? "rdma accepts it, mapped refuses it" : "mapped and rdma refuse it";
}

std::string line(std::string_view label, std::string_view text) {
  return fmt::format("  {:<21}{}\n", label, text);
}

std::string list(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, " "));
}

std::string hardware_rma(const transport::UcxOffer& offer) {
  std::vector<std::string> names;
  std::copy_if(offer.network.begin(), offer.network.end(), std::back_inserter(names),
               [](const std::string& name) { return transport::has_hardware_rma(name); });
  return names.empty() ? "none (no rc or dc transport)" : list(names);
}

}  // namespace

std::string offers_text(const std::vector<HostOffer>& offers) {
  std::string text;
  std::vector<bool> printed(offers.size());
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (printed[i]) continue;
    std::vector<std::string> hosts;
    for (std::size_t j = i; j < offers.size(); ++j) {
      if (offers[j].offer != offers[i].offer) continue;
      printed[j] = true;
      if (std::find(hosts.begin(), hosts.end(), offers[j].host) == hosts.end())
        hosts.push_back(offers[j].host);
    }
    const transport::UcxOffer& offer = offers[i].offer;
    text += fmt::format("UCX {} on {}, with UCX_TLS={} UCX_NET_DEVICES={}\n", offer.version,
                        fmt::join(hosts, ", "), offer.allowed_transports, offer.allowed_devices);
    text += line("network", list(offer.network));
    text += line("hardware RMA", hardware_rma(offer));
    text += line("shared memory", list(offer.in_memory));
    if (!offer.other.empty()) text += line("other", list(offer.other));
  }
  return text;
}

std::string routes_text(const std::vector<Route>& routes, std::string_view window) {
  std::string text;
  for (const Kind& kind : by_kind(routes)) {
    const Route& route = *kind.first;
    text += fmt::format("{:<23}{}\n", route.same_host() ? "ps on this host" : "ps on another host",
                        describe(route));
    text += line("reason", reason(route, window));
    if (route.failure.empty()) text += line("--require-transport", verdict(route));
    if (route.from.empty()) continue;
    const std::size_t named = std::min(kind.routes.size(), kMaxNamed);
    const auto end = kind.routes.begin() + static_cast<std::ptrdiff_t>(named);
    text +=
        line("routes", fmt::format("{}: {}{}", kind.routes.size(), fmt::join(kind.routes.begin(), end, ", "),
                                   named < kind.routes.size() ? ", ..." : ""));
  }
  return text;
}

void require_routes(const std::vector<Route>& routes, std::string_view required) {
  for (const Route& route : routes) {
    if (!route.failure.empty()) throw Error(static_cast<Code>(route.code), route.failure);
    if (!accepted(route, required)) {
      throw Error(Code::failed_precondition,
                  fmt::format("--require-transport={} refuses the route from {} on {} to {} on {}", required,
                              route.from, route.from_host, route.to, route.to_host));
    }
  }
}

}  // namespace capstan::launch

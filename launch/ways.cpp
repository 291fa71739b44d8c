// ways.cpp -- the text of `capstan settings --transports`.
#include "launch/ways.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "capstan/error.hpp"

namespace capstan::launch {
namespace {

using client::Path;

/// That many are named one by one.
constexpr std::size_t kNamed = 8;

struct Kind {
  const Way* first;
  std::vector<std::string> ways;
};

/// Failures count by their code: their texts name each a ps, and the first says enough.
auto kind_of(const Way& way) { return std::tuple(!way.same_host(), way.code, way.path, way.transports); }

std::vector<Kind> by_kind(const std::vector<Way>& ways) {
  std::vector<Kind> kinds;
  for (const Way& way : ways) {
    const std::string text =
        fmt::format("{} on {} -> {} on {}", way.from, way.from_host, way.to, way.to_host);
    const auto found = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const Kind& kind) { return kind_of(*kind.first) == kind_of(way); });
    if (found != kinds.end()) {
      found->ways.push_back(text);
    } else {
      kinds.push_back({&way, {text}});
    }
  }
  std::sort(kinds.begin(), kinds.end(),
            [](const Kind& a, const Kind& b) { return kind_of(*a.first) < kind_of(*b.first); });
  return kinds;
}

std::string what_it_is(const Way& way) {
  if (!way.failure.empty()) return "no way";
  if (way.path == Path::in_process) return std::string(to_string(way.path));
  // Not even a mapped ps goes without a connection.
  if (way.path == Path::mapped) return fmt::format("mapped memory; calls over {}", way.transports);
  const bool emulated = way.path == Path::rma && !way.hardware_rma;
  return fmt::format("{}{} over {}", emulated ? "emulated " : "", to_string(way.path), way.transports);
}

std::string reason(const Way& way, std::string_view window) {
  if (!way.failure.empty()) return way.failure;
  const bool asked = window == "rma" || window == "am";
  switch (way.path) {
    case Path::in_process:
      return "the ps is a thread of the same process";
    case Path::mapped:
      return "loads and stores in the ps's memory, which is the fastest way";
    case Path::rma:
      if (way.hardware_rma) {
        return asked ? "--window rma" : "the adapter accesses the ps's memory, without the ps's CPU";
      }
      return "--window rma, but UCX has no rc or dc transport to it: the ps's CPU does the work, and slower "
             "than for active messages";
    case Path::messages:
      if (asked) return fmt::format("--window {}", window);
      if (way.same_host()) {
        return "the ps's memory cannot be mapped: another IPC namespace, or UCX_TLS lacks sysv and posix";
      }
      return "UCX has no rc or dc transport to it, so the ps's CPU serves reads and pushes; look at UCX_TLS, "
             "UCX_NET_DEVICES and ucx_info -d";
  }
  return {};
}

bool accepted(const Way& way, std::string_view required) {
  return client::good_enough(required, way.path, way.same_host(), way.hardware_rma);
}

std::string verdict(const Way& way) {
  if (accepted(way, "mapped")) return "mapped and rdma accept it";
  return accepted(way, "rdma") ? "rdma accepts it, mapped refuses it" : "mapped and rdma refuse it";
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
               [](const std::string& name) { return transport::names_hardware_rma(name); });
  return names.empty() ? "none (no rc or dc transport)" : list(names);
}

}  // namespace

std::string offers_text(const std::vector<HostOffer>& offers) {
  std::string text;
  std::vector<bool> told(offers.size());
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (told[i]) continue;
    std::vector<std::string> hosts;
    for (std::size_t j = i; j < offers.size(); ++j) {
      if (offers[j].offer != offers[i].offer) continue;
      told[j] = true;
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

std::string ways_text(const std::vector<Way>& ways, std::string_view window) {
  std::string text;
  for (const Kind& kind : by_kind(ways)) {
    const Way& way = *kind.first;
    text += fmt::format("{:<23}{}\n", way.same_host() ? "ps on this host" : "ps on another host",
                        what_it_is(way));
    text += line("reason", reason(way, window));
    if (way.failure.empty()) text += line("--require-transport", verdict(way));
    if (way.from.empty()) continue;
    const std::size_t named = std::min(kind.ways.size(), kNamed);
    const auto end = kind.ways.begin() + static_cast<std::ptrdiff_t>(named);
    text += line("ways", fmt::format("{}: {}{}", kind.ways.size(), fmt::join(kind.ways.begin(), end, ", "),
                                     named < kind.ways.size() ? ", ..." : ""));
  }
  return text;
}

void require_ways(const std::vector<Way>& ways, std::string_view required) {
  for (const Way& way : ways) {
    if (!way.failure.empty()) throw Error(static_cast<Code>(way.code), way.failure);
    if (!accepted(way, required)) {
      throw Error(Code::failed_precondition,
                  fmt::format("--require-transport={} refuses the way from {} on {} to {} on {}", required,
                              way.from, way.from_host, way.to, way.to_host));
    }
  }
}

}  // namespace capstan::launch

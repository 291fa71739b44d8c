// offer.cpp -- parses UCX's description of a context, since UCX has no call that lists transports.
#include "transport/ucx/offer.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <sstream>

#include "transport/ucx/context.hpp"
#include "transport/ucx/version.hpp"

namespace capstan::transport {
namespace {

/// Returns the value of a variable in settings that UCX has printed. UCX prints the name with the prefix
/// CAPSTAN_ if a variable with that prefix is set.
std::string value_of(const std::string& variable, const std::string& config) {
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos && line.substr(0, equals).ends_with(variable))
      return line.substr(equals + 1);
  }
  return "unknown";
}

bool starts_with_one_of(std::string_view name, std::span<const std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](auto begin) { return name.starts_with(begin); });
}

enum class Reach { host, other, network };

Reach reach_of(std::string_view transport) {
  constexpr std::array<std::string_view, 5> kInMemory{"sysv/", "posix/", "cma/", "knem/", "xpmem/"};
  constexpr std::array<std::string_view, 5> kOther{"self/", "cuda", "gdr_copy", "rocm", "ze_"};
  if (starts_with_one_of(transport, kInMemory)) return Reach::host;
  return starts_with_one_of(transport, kOther) ? Reach::other : Reach::network;
}

}  // namespace

UcxOffer ucx_offer() {
  UcxOffer offer;
  offer.version = ucx_version();
  const Handle<ConfigTraits> config = read_config();
  const std::string settings =
      printed([&](std::FILE* to) { ucp_config_print(config.get(), to, "", UCS_CONFIG_PRINT_CONFIG); });
  offer.allowed_transports = value_of("UCX_TLS", settings);
  offer.allowed_devices = value_of("UCX_NET_DEVICES", settings);

  const Handle<ContextTraits> context = open_context();
  for (const std::string& name : transports_of(context.get())) {
    const Reach reach = reach_of(name);
    auto& list = reach == Reach::host ? offer.in_memory : reach == Reach::other ? offer.other : offer.network;
    list.push_back(name);
  }
  return offer;
}

std::vector<std::string> network_kinds(const std::vector<std::string>& transports) {
  std::vector<std::string> kinds;
  for (const std::string& one : transports) {
    const std::string kind = one.substr(0, one.find('/'));
    if (reach_of(one) == Reach::network && std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      kinds.push_back(kind);
    }
  }
  return kinds;
}

bool has_hardware_rma(std::string_view transports) {
  // The reliable transports of InfiniBand and RoCE. UCX emulates RMA over ud and tcp.
  return transports.find("rc_") != std::string_view::npos || transports.find("dc_") != std::string_view::npos;
}

bool is_loopback(std::string_view transport) { return transport.ends_with("/lo"); }

}  // namespace capstan::transport

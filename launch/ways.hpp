// ways.hpp -- ways from ranks to ps, put together by kind and told.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/channel/path.hpp"
#include "transport/ucx/offer.hpp"

namespace capstan::launch {

/// From one rank to one ps, as they found it. Travels from the rank to the coordinator.
struct Way {
  std::string from;  ///< "worker 0"
  std::string from_host;
  std::string to;
  std::string to_host;
  client::Path path = client::Path::messages;
  std::string transports = {};  ///< of the connection between them
  bool hardware_rma = false;
  std::string failure = {};  ///< there is none, and why
  std::int32_t code = 0;     ///< of the failure

  bool same_host() const { return from_host == to_host; }
};

/// What UCX offers on a host.
struct HostOffer {
  std::string host;
  transport::UcxOffer offer;
};

/// What UCX offers, hosts with the same together.
std::string offers_text(const std::vector<HostOffer>& offers);

/// One paragraph for each kind: same host or another, path, transports; with the reason and with what
/// --require-transport says to it. `window` is the setting.
std::string ways_text(const std::vector<Way>& ways, std::string_view window);

/// Throws what a run would, when one of the ways failed or `required` (--require-transport) refuses it.
void require_ways(const std::vector<Way>& ways, std::string_view required);

}  // namespace capstan::launch

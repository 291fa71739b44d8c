// routes.hpp -- routes from ranks to ps, grouped by kind and formatted as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/channel/path.hpp"
#include "transport/ucx/offer.hpp"

namespace capstan::launch {

/// Route from one rank to one ps, as that rank found it. Serialized and sent to the coordinator.
struct Route {
  std::string from;  ///< "worker 0"
  std::string from_host;
  std::string to;
  std::string to_host;
  client::Path path = client::Path::messages;
  std::string transports = {};  ///< UCX transports of the connection
  bool hardware_rma = false;
  std::string failure = {};  ///< why there is no route; "" if there is one
  std::int32_t code = 0;     ///< Code of the failure

  bool same_host() const { return from_host == to_host; }
};

/// Transports that UCX offers on a host.
struct HostOffer {
  std::string host;
  transport::UcxOffer offer;
};

/// Formats the offers; hosts with the same offer share a paragraph.
std::string offers_text(const std::vector<HostOffer>& offers);

/// One paragraph per kind of route (same host or not, path, transports), with the reason and the verdict of
/// --require-transport. `window` is the value of --window.
std::string routes_text(const std::vector<Route>& routes, std::string_view window);

/// Throws the Error that a run would throw if a route failed or `required` (--require-transport) rejects it.
void require_routes(const std::vector<Route>& routes, std::string_view required);

}  // namespace capstan::launch

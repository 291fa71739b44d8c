// routes.hpp -- a cache of routes to variables.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "client/ps_connections.hpp"
#include "client/route.hpp"

namespace capstan::client {

/// Used by the thread that owns the data fabric.
class Routes {
 public:
  /// `connections` must outlive this object.
  explicit Routes(PsConnections& connections) : connections_(connections) {}

  /// Returns the route to a variable, or to one part of it. Rebuilds it after a ps's memory was lost. Valid
  /// until the next call for the same variable. Throws the same errors as PsConnections::at.
  const Route& of(const protocol::VariableDescriptor& variable) {
    std::unique_ptr<Route>& route = cached(variable);
    if (!route || !route->valid()) route = make(variable);
    return *route;
  }

 private:
  std::unique_ptr<Route>& cached(const protocol::VariableDescriptor& variable);
  std::unique_ptr<Route> make(const protocol::VariableDescriptor& variable);

  PsConnections& connections_;
  std::vector<std::unique_ptr<Route>> of_variables_;  // by id; null until first use
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<Route>> of_parts_;  // by id and part
};

}  // namespace capstan::client

// ucx_context.hpp -- opening UCX, with the features that Capstan needs and under the UCX_* variables as they
// are.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "transport/ucx_handles.hpp"

namespace capstan::transport {

/// UCX_* variables, which CAPSTAN_UCX_* ones beat.
Handle<ConfigTraits> read_config();

/// Throws Error when UCX finds no usable device.
Handle<ContextTraits> open_context();

/// What one of UCX's calls that print has printed: UCX has no others for some things. Throws Error.
std::string printed(const std::function<void(std::FILE*)>& print);

/// Of a context, by UCX's names, in UCX's order: "self/memory0", "tcp/lo".
std::vector<std::string> transports_of(ucp_context_h context);

}  // namespace capstan::transport

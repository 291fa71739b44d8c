// context.hpp -- opening UCX, with the features that Capstan needs and under the UCX_* variables as they
// are.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "transport/ucx/handles.hpp"

namespace capstan::transport {

/// UCX_* variables, which CAPSTAN_UCX_* ones beat.
Handle<ConfigTraits> read_config();

/// Throws Error when UCX finds no usable device.
Handle<ContextTraits> open_context();

/// It was built for CUDA, found its driver, was not told otherwise by UCX_TLS, and reads into and writes from
/// a GPU's memory: since 1.16, or with UCX_PROTO_ENABLE=y (openucx/ucx#9533).
bool knows_gpu_memory(ucp_context_h context);

/// What one of UCX's calls that print has printed: UCX has no others for some things. Throws Error.
std::string printed(const std::function<void(std::FILE*)>& print);

/// Of a context, by UCX's names, in UCX's order: "self/memory0", "tcp/lo".
std::vector<std::string> transports_of(ucp_context_h context);

}  // namespace capstan::transport

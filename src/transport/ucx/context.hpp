// context.hpp -- opens UCX with the features that Capstan needs, as UCX_* variables configure it.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "transport/ucx/handles.hpp"

namespace capstan::transport {

/// Reads UCX_* variables; CAPSTAN_UCX_* ones take precedence.
Handle<ConfigTraits> read_config();

/// Throws Error if UCX finds no usable device.
Handle<ContextTraits> open_context();

/// Returns true if UCX was built for CUDA, found its driver, may use it (UCX_TLS), and supports RMA on GPU
/// memory: since 1.16, or with UCX_PROTO_ENABLE=y (openucx/ucx#9533).
bool knows_gpu_memory(ucp_context_h context);

/// Returns the text that `print`, a UCX function, writes; UCX offers some information in no other way. Throws
/// Error.
std::string printed(const std::function<void(std::FILE*)>& print);

/// Returns UCX's names of a context's transports, in UCX's order: "self/memory0", "tcp/lo".
std::vector<std::string> transports_of(ucp_context_h context);

}  // namespace capstan::transport

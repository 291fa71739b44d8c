// ucx_context.hpp -- opening UCX, with the features that Capstan needs and under the UCX_* variables as they
// are.
#pragma once

#include "transport/ucx_handles.hpp"

namespace capstan::transport {

/// UCX_* variables, which CAPSTAN_UCX_* ones beat.
Handle<ConfigTraits> read_config();

/// Throws Error when UCX finds no usable device.
Handle<ContextTraits> open_context();

}  // namespace capstan::transport

// context.hpp -- opens UCX with the features that Capstan needs, as UCX_* variables configure it.
#pragma once

#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "transport/ucx/handles.hpp"

namespace capstan::transport {

/// Reads UCX_* variables; CAPSTAN_UCX_* ones take precedence.
Handle<ConfigTraits> read_config();

/// Throws Error if UCX finds no usable device.
Handle<ContextTraits> open_context();

/// While an object lives, UCX opens its shared-memory transports with queues of 64 buffers, as it does by
/// default before 1.16; since then, they have 256. No endpoint of Capstan uses these queues, but each worker
/// of UCX fills them. Other libraries, such as MPI, must not get them: both ends of a connection need queues
/// of equal length. A variable of the user has precedence. Sets environment variables.
class ShortQueues {
 public:
  ShortQueues();
  ~ShortQueues();
  ShortQueues(const ShortQueues&) = delete;
  ShortQueues& operator=(const ShortQueues&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  std::vector<const char*> set_;
};

/// Returns true if UCX was built for CUDA, found its driver, may use it (UCX_TLS), and supports RMA on GPU
/// memory: since 1.16, or with UCX_PROTO_ENABLE=y (openucx/ucx#9533).
bool knows_gpu_memory(ucp_context_h context);

/// Returns the text that `print`, a UCX function, writes; UCX offers some information in no other way. Throws
/// Error.
std::string printed(const std::function<void(std::FILE*)>& print);

/// Returns UCX's names of a context's transports, in UCX's order: "self/memory0", "tcp/lo".
std::vector<std::string> transports_of(ucp_context_h context);

}  // namespace capstan::transport

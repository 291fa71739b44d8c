// end_worker.hpp -- lets a function end the worker that runs it; the worker is a thread of this process on a
// LoopHub.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include "capstan/cluster.hpp"
#include "cluster/runtime.hpp"
#include "strategy/context.hpp"
#include "transport/message_types.hpp"

namespace capstan::ending {

inline constexpr std::uint16_t kProbe = 201;
/// Whether the worker with this index has received a probe.
inline std::array<std::atomic<bool>, 8> probe_received{};

/// Main function of a worker, for RankThreadsOptions.
inline int worker(const std::shared_ptr<cluster::Runtime>& runtime) {
  std::atomic<bool>& received = probe_received.at(static_cast<std::size_t>(runtime->self().index));
  runtime->control().on_message(kProbe, [&received](const transport::Message&) { received = true; });
  return Server(Cluster(runtime)).join();
}

/// Sends the worker of this thread a message of `type`, if not 0, and a probe. Blocks until the worker has
/// received both, and therefore all messages that were sent to it before.
inline void await_own_messages(std::uint16_t type = 0) {
  auto& runtime = strategy::Context::current().client().runtime();
  const cluster::Member& self = runtime.self();
  std::atomic<bool>& received = probe_received.at(static_cast<std::size_t>(self.index));
  received = false;
  transport::Peer& to_self = runtime.data().connect(self.rank, self.name(), self.control_address);
  if (type != 0) to_self.send(type, {});
  to_self.send(kProbe, {});
  runtime.data().progress();
  while (!received) std::this_thread::yield();
}

/// Shuts down the worker of this thread as the end of a job does, so its fabrics close while other ranks use
/// them. The result of the calling function is discarded.
inline void end_this_worker() { await_own_messages(transport::kShutdown); }

}  // namespace capstan::ending

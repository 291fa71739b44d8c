// end_worker.hpp -- a function ends the worker that runs it, a thread of this process that meets others over
// a LoopHub.
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

inline constexpr std::uint16_t kHasHeard = 201;
/// Of workers, by index.
inline std::array<std::atomic<bool>, 8> has_heard{};

/// What a worker does, for RankThreadsOptions.
inline int worker(const std::shared_ptr<cluster::Runtime>& runtime) {
  std::atomic<bool>& heard = has_heard.at(static_cast<std::size_t>(runtime->self().index));
  runtime->control().on_message(kHasHeard, [&heard](const transport::Message&) { heard = true; });
  return Server(Cluster(runtime)).join();
}

/// Sends the worker of this thread a message, and one of `type` before it unless that is 0. Returns when it
/// has heard them, and all that was sent to it before.
inline void await_own_messages(std::uint16_t type = 0) {
  auto& runtime = strategy::Context::current().client().runtime();
  const cluster::Member& self = runtime.self();
  std::atomic<bool>& heard = has_heard.at(static_cast<std::size_t>(self.index));
  heard = false;
  transport::Peer& to_self = runtime.data().connect(self.rank, self.name(), self.control_address);
  if (type != 0) to_self.send(type, {});
  to_self.send(kHasHeard, {});
  runtime.data().progress();
  while (!heard) std::this_thread::yield();
}

/// Ends the worker of this thread as the end of the job would, so that its fabrics close under the hands of
/// the others. What the function that calls it returns is for nobody.
inline void end_this_worker() { await_own_messages(transport::kShutdown); }

}  // namespace capstan::ending
